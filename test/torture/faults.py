# faults.py: the list of what is done to the torture's clusters, and who does it.
#
# Light faults strike single requests and come all the time; heavy ones befall a
# cluster as a whole, one at a time for each cluster.  A heavy fault heals before
# its function returns, and returns whether it has really struck.

import os
import random
import signal
import subprocess
import threading
import time
import uuid

from cluster import LEASE, boottime, send, state_of, wait_until

# A late copy of a request may be applied for so long after it was sent.
LATE_SECONDS = 1.3 * LEASE + 0.5


class Events:
    """The file that tells the checker what was done when, and the counts."""

    def __init__(self, path):
        self.file = open(path, 'w')
        self.lock = threading.Lock()
        self.counts = {}

    def note(self, kind, cluster, began, ended=None, detail=''):
        with self.lock:
            self.file.write('%s\t%s\t%d\t%d\t%s\n' % (
                kind, cluster, began, boottime() if ended is None else ended, detail))
            self.file.flush()

    def count(self, kind):
        with self.lock:
            self.counts[kind] = self.counts.get(kind, 0) + 1


class Scene:
    """A cluster, and all that a fault needs to know of its surroundings."""

    def __init__(self, cluster, network, client, events, others):
        self.cluster = cluster
        self.others = others
        self.link = network.link(cluster.number)
        self.table = network
        self.client = client
        self.events = events

    def cut_off(self, seconds, halfway=lambda: None):
        """No request gets through; the checker is told."""
        self.link.cut()
        began = boottime()
        time.sleep(seconds / 2)
        halfway()
        time.sleep(seconds / 2)
        ended = boottime()
        self.link.heal()
        self.events.note('cut', self.cluster.number, began, ended)

    def stand_still(self, seconds):
        began = boottime()
        self.cluster.stand_still(seconds)
        self.events.note('still', self.cluster.number, began)

    def recovered(self):
        return wait_until(self.cluster.answers, 60)


# ---- the heavy ones ----

def partition(leases):
    def strike(scene):
        scene.cut_off(leases * LEASE)
        return True
    return strike


one_is_late = threading.Lock()
CLAIM_ALL = """SELECT count(*) FROM generate_series(0, 2) q, generate_series(0, 3) r,
    ddb_queue_claim('q' || q, lease => '2500 ms', resources => ARRAY['r' || r])"""


def claim_elsewhere(scene):
    """Whoever claims gives the jobs back, so that nobody finishes them soon."""
    scene.table.make_all_due()
    for cluster in scene.others:
        try:
            cluster.sql(CLAIM_ALL)
        except (RuntimeError, subprocess.TimeoutExpired):
            pass                    # another fault has struck it


def completion_late(scene):
    """Sessions commit completions while their cluster is cut off: others have claimed the
    jobs anew before DynamoDB hears of it."""
    with one_is_late:
        before = scene.cluster.refused_completions()
        scene.client.say('late %d' % scene.cluster.number)
        time.sleep(0.5)
        scene.cut_off(3.0 * LEASE, halfway=lambda: claim_elsewhere(scene))
        wait_until(lambda: scene.cluster.refused_completions() > before, 10)
        return True                 # a session elsewhere may have finished the job


def worker_stop(scene):
    pid = scene.cluster.worker()
    if pid is None or not send(pid, signal.SIGSTOP):
        return False
    stopped = wait_until(lambda: state_of(pid) in ('T', None), 30)
    began = boottime()
    time.sleep(LEASE * random.choice((0.3, 1.0, 1.5, 2.0)))
    if stopped and state_of(pid) == 'T':
        scene.events.note('cut', scene.cluster.number, began)
    return send(pid, signal.SIGCONT) and stopped


def backend_stop(where):
    """Around the guard, with a partition meanwhile: its lease goes to others."""
    def strike(scene):
        scene.client.say('stop %d %s' % (scene.cluster.number, where))
        if not wait_until(scene.cluster.stopped_backends, 6):
            return False
        stopped = scene.cluster.stopped_backends()
        scene.cut_off(LEASE * 1.1)
        time.sleep(LEASE * random.choice((0, 0.5)))
        for pid in stopped:
            send(pid, signal.SIGCONT)
        return True
    return strike


def worker_terminate(scene):
    pid = scene.cluster.worker()
    if pid is None or not send(pid, signal.SIGTERM):
        return False
    return wait_until(lambda: scene.cluster.worker() not in (None, pid), 20)


def worker_kill(scene):
    pid = scene.cluster.worker()
    return pid is not None and send(pid, signal.SIGKILL) and scene.recovered()


def backend_kill(scene):
    pids = scene.cluster.backends()
    return bool(pids) and send(random.choice(pids), signal.SIGKILL) and scene.recovered()


def immediate_restart(scene):
    scene.cluster.stop_at_once()
    scene.cluster.start()
    return scene.recovered()


def wall_clock(scene):
    """An hour ahead or back while leases run, and home again."""
    scene.cluster.shim.set_offset(random.choice((-3600, 3600)))
    time.sleep(random.uniform(0.3, 1.5) * LEASE)
    scene.cluster.shim.set_offset(0)
    return True


def wall_clock_cut_off(scene):
    """The clock goes back just as the lease can no longer be renewed."""
    scene.cluster.shim.set_offset(-3600)
    scene.cut_off(1.7 * LEASE)
    scene.cluster.shim.set_offset(0)
    return True


def credentials_expire(scene):
    """Good ones come a while later."""
    scene.link.expire(scene.link.keys())
    time.sleep(random.uniform(0.1, 0.6) * LEASE)
    scene.link.renew()
    scene.cluster.write_keys(scene.link.keys())
    scene.cluster.reload()
    return True


def credentials_rotate(scene):
    """The server has the new ones before the old ones end."""
    old = scene.link.keys()
    scene.link.renew()
    scene.cluster.write_keys(scene.link.keys())
    scene.cluster.reload()
    time.sleep(random.uniform(0.0, 0.5))
    scene.link.expire(old)
    return True


def leaderships_change(scene):
    """The cluster stands for less for a while, which it gives up if it leads."""
    names = scene.cluster.leaderships()
    scene.cluster.write_leaderships(random.choice(((), names[:1], names[1:])))
    scene.cluster.reload()
    time.sleep(LEASE * random.choice((0.1, 0.5, 1.0)))
    scene.cluster.write_leaderships(names)
    scene.cluster.reload()
    return True


def operator_deletes(scene):
    name = 'o%d' % random.randrange(8)
    began = boottime()
    scene.table.delete(name)
    scene.events.note('operator', scene.cluster.number, began, detail=name)
    return True


def operator_edits(scene):
    name = 'o%d' % random.randrange(8)
    began = boottime()
    struck = scene.table.take(name, str(uuid.uuid4()))
    scene.events.note('operator', scene.cluster.number, began, detail=name)
    return struck


def names_fail(scene):
    """For a new worker, since the old one has the address in its cache."""
    before = scene.cluster.shim.refused()
    scene.cluster.shim.set_names_fail(True)
    worker_terminate(scene)
    time.sleep(random.uniform(0.3, 1.2) * LEASE)
    scene.cluster.shim.set_names_fail(False)
    return scene.cluster.shim.refused() > before


def slow_tls(scene):
    before = scene.table.struck().get('slow_tls', 0)
    scene.link.slow_tls(random.uniform(0.3, 1.0) * LEASE, random.uniform(0.3, 1.5))
    return scene.table.struck().get('slow_tls', 0) > before


starving = threading.Lock()


def starved(_scene):
    """More busy loops than anybody's share of two processors leaves room for."""
    with starving:
        loops = [subprocess.Popen(['sh', '-c', 'while :; do :; done'])
                 for _ in range(8 * (os.cpu_count() or 1))]
        time.sleep(random.uniform(1.0, 2.5))
        for loop in loops:
            loop.kill()
            loop.wait()
    return True


HEAVY = {
    'partition_half': partition(0.5),
    'partition_one': partition(1.05),
    'partition_three': partition(3.0),
    'completion_late': completion_late,
    'worker_stop': worker_stop,
    'backend_stop_before': backend_stop('before'),
    'backend_stop_after': backend_stop('after'),
    'worker_terminate': worker_terminate,
    'worker_kill': worker_kill,
    'backend_kill': backend_kill,
    'immediate_restart': immediate_restart,
    'wall_clock': wall_clock,
    'wall_clock_cut_off': wall_clock_cut_off,
    'credentials_expire': credentials_expire,
    'credentials_rotate': credentials_rotate,
    'leaderships_change': leaderships_change,
    'operator_deletes': operator_deletes,
    'operator_edits': operator_edits,
    'names_fail': names_fail,
    'slow_tls': slow_tls,
    'starved': starved,
}

def kinds_of(network):
    """All that can be done where the network is this one."""
    heavy = [kind for kind in HEAVY
             if kind != 'slow_tls' or network.url(0).startswith('https')]
    return list(network.kinds) + heavy


class Storm:
    """Faults from now on, of the kinds named, until it is ended."""

    drawing = threading.Lock()
    deck = []

    def __init__(self, scenes, network, kinds, seed):
        self.scenes = scenes
        self.network = network
        self.over = threading.Event()
        self.errors = []
        self.heavy = [kind for kind in kinds if kind in HEAVY]
        self.light = [kind for kind in kinds if kind not in HEAVY]
        random.seed(seed)
        self.threads = [threading.Thread(target=self.run, args=(self.heavy_ones, scene))
                        for scene in scenes if self.heavy]
        if self.light:
            self.threads.append(threading.Thread(target=self.run,
                                                 args=(self.light_ones, scenes)))
        for thread in self.threads:
            thread.start()

    def run(self, function, argument):
        try:
            function(argument)
        except Exception as error:      # a fault that cannot be made is a failed run
            self.errors.append(repr(error))

    def light_ones(self, scenes):
        while not self.over.wait(random.uniform(0.05, 0.35)):
            random.choice(scenes).link.strike(random.choice(self.light))

    def heavy_ones(self, scene):
        while not self.over.wait(random.uniform(0.1, 0.6)):
            kind = self.draw()
            if HEAVY[kind](scene):
                scene.events.count(kind)
            else:
                with self.drawing:
                    self.deck.insert(0, kind)       # again, before the next deck

    def draw(self):
        """Each kind in turn, over storms and clusters; in any order."""
        with self.drawing:
            if not self.deck:
                self.deck += random.sample(self.heavy, len(self.heavy))
            return self.deck.pop()

    def end(self):
        """Returns when everything is healed and no late copy is under way."""
        self.over.set()
        for thread in self.threads:
            thread.join()
        self.network.clear()
        time.sleep(LATE_SECONDS)
        for scene in self.scenes:
            for pid in scene.cluster.stopped_backends():
                send(pid, signal.SIGCONT)
            if not scene.recovered():
                self.errors.append(scene.cluster.name + ' does not answer')
