# drain.py: the end of a torture with queues.  Nothing is broken any more: what the table has is
# written down, all jobs are worked on, and what is left is written down again.
#
# It leaves in the folder, for the checker:
#
#	jobs.before, jobs.after		the items of the queues' table, JSON, one a line
#	depths						queue, resource and depth, as ddb_queue_depths() tells them
#	worked.N					what cluster N's table "worked" holds in the end

import json
import os
import time

from cluster import boottime, wait_until
from network import QUEUE_TABLE

QUEUES = 3                  # as in client.h
DRAIN_SECONDS = 240
SETTLE_SECONDS = 60


def is_head(item):
    return item['sk']['S'] == 'head'


def depth_of(head):
    return int(head['seq']['N']) - int(head['done']['N']) if 'seq' in head else 0


class Drain:
    def __init__(self, work, clusters, network, client, events, pulse):
        self.work = work
        self.clusters = clusters
        self.network = network
        self.client = client
        self.events = events
        self.pulse = pulse

    def path(self, name):
        return os.path.join(self.work, name)

    def items(self):
        return self.network.items(QUEUE_TABLE)

    def write_items(self, name, items):
        with open(self.path(name), 'w') as f:
            f.writelines(json.dumps(item) + '\n' for item in items)

    def send_outboxes(self):
        for cluster in self.clusters:
            while cluster.sql_patiently('SELECT ddb_outbox_send()') != '0':
                pass

    def depths(self):
        cluster = self.clusters[0]
        return ''.join(cluster.sql_patiently(
            "COPY (SELECT 'q%d', resource, depth FROM ddb_queue_depths('q%d') "
            "ORDER BY resource) TO STDOUT" % (number, number)) + '\n'
                       for number in range(QUEUES)).split('\n')

    def take_stock(self):
        """Items and depths of one moment: a worker may still be finishing a job."""
        seen = []

        def same():
            before = self.items()
            seen[:] = [before, [line for line in self.depths() if line]]
            return before == self.items()
        if not wait_until(same, SETTLE_SECONDS):
            raise RuntimeError('the table of the queues does not come to rest')
        self.write_items('jobs.before', seen[0])
        with open(self.path('depths'), 'w') as f:
            f.writelines(line + '\n' for line in seen[1])

    def work_off(self):
        """All jobs; each is due at once."""
        deadline = time.monotonic() + DRAIN_SECONDS
        while True:
            waiting = [item for item in self.items() if is_head(item) and depth_of(item) > 0]
            if not waiting or time.monotonic() > deadline:
                return waiting
            for head in waiting:
                self.network.make_due(head)
            began = boottime()
            self.client.ask('drain', 'drained')
            self.events.note('drain', '-', began, detail=self.pulse.pace(began))

    def run(self):
        """Returns what went wrong."""
        self.send_outboxes()
        self.take_stock()
        waiting = self.work_off()
        self.write_items('jobs.after', self.items())
        for cluster in self.clusters:
            with open(self.path('worked.%d' % cluster.number), 'w') as f:
                rows = cluster.sql('COPY worked TO STDOUT')
                f.write(rows + '\n' if rows else '')
        return ['Q1: jobs of %s cannot be worked off' % head['pk']['S'] for head in waiting]
