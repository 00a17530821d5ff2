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

WRITE = 'UpdateItem'
THROTTLES = ('ProvisionedThroughputExceededException', 'ThrottlingException',
             'RequestLimitExceeded')

# What the counting proxy is told for each.
LIGHT = {
    'drop': lambda: dict(action='drop'),
    'lose_reply': lambda: dict(action='lose-reply'),
    'duplicate': lambda: dict(action='duplicate', operation=WRITE),
    'late_apply': lambda: dict(action='delay', operation=WRITE,
                               ms=int(1000 * LEASE * random.uniform(1.0, 1.3))),
    'late_reply': lambda: dict(action='delay-reply',
                               ms=int(1000 * LEASE * random.uniform(0.8, 1.1))),
    'reset': lambda: dict(action='reset'),
    'http_500': lambda: dict(action='error'),
    'http_500_applied': lambda: dict(action='error-reply'),
    'http_503': lambda: dict(action='error', status=503, type='ServiceUnavailable'),
    'http_503_applied': lambda: dict(action='error-reply', status=503,
                                     type='ServiceUnavailable'),
    'throttle': lambda: dict(action='error', status=400, type=random.choice(THROTTLES)),
    'conflict': lambda: dict(action='error', status=400, operation=WRITE,
                             type='TransactionConflictException'),
    'truncate': lambda: dict(action='truncate-reply'),
    'corrupt': lambda: dict(action='corrupt-reply'),
}

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

    def __init__(self, cluster, proxy, front, operator, client, events):
        self.cluster = cluster
        self.proxy = proxy
        self.front = front
        self.operator = operator
        self.client = client
        self.events = events

    def cut_off(self, seconds):
        """No request gets through; the checker is told."""
        self.proxy.fault(action='black-hole', count=-1, name='partitioned request')
        began = boottime()
        time.sleep(seconds)
        ended = boottime()
        self.proxy.clear()
        self.events.note('cut', self.cluster.number, began, ended)

    def recovered(self):
        return wait_until(self.cluster.answers, 60)


# ---- the heavy ones ----

def partition(leases):
    def strike(scene):
        scene.cut_off(leases * LEASE)
        return True
    return strike


def worker_stop(scene):
    pid = scene.cluster.worker()
    if pid is None or not send(pid, signal.SIGSTOP):
        return False
    stopped = wait_until(lambda: state_of(pid) in ('T', None), 5)
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
    scene.proxy.fault(action='black-hole', count=-1, name='partitioned request')
    began = boottime()
    scene.cluster.shim.set_offset(-3600)
    time.sleep(1.7 * LEASE)
    scene.events.note('cut', scene.cluster.number, began)
    scene.proxy.clear()
    scene.cluster.shim.set_offset(0)
    return True


def credentials(scene):
    """They expire; new ones come a while later."""
    scene.proxy.fault(action='error', status=400, count=-1, name='expired credentials',
                      type='ExpiredTokenException')
    time.sleep(random.uniform(0.1, 0.6) * LEASE)
    scene.cluster.write_keys()
    scene.proxy.clear()
    scene.cluster.reload()
    return True


def operator_deletes(scene):
    name = 'o%d' % random.randrange(8)
    began = boottime()
    scene.operator.delete(name)
    scene.events.note('operator', scene.cluster.number, began, detail=name)
    return True


def operator_edits(scene):
    name = 'o%d' % random.randrange(8)
    began = boottime()
    struck = scene.operator.take(name, str(uuid.uuid4()))
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
    before = scene.front.slow
    scene.front.delay = random.uniform(0.3, 1.5)
    scene.front.hang_up()
    time.sleep(random.uniform(0.3, 1.0) * LEASE)
    scene.front.delay = 0.0
    return scene.front.slow > before


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
    'worker_stop': worker_stop,
    'backend_stop_before': backend_stop('before'),
    'backend_stop_after': backend_stop('after'),
    'worker_terminate': worker_terminate,
    'worker_kill': worker_kill,
    'backend_kill': backend_kill,
    'immediate_restart': immediate_restart,
    'wall_clock': wall_clock,
    'wall_clock_cut_off': wall_clock_cut_off,
    'credentials': credentials,
    'operator_deletes': operator_deletes,
    'operator_edits': operator_edits,
    'names_fail': names_fail,
    'slow_tls': slow_tls,
    'starved': starved,
}

ALL = list(LIGHT) + list(HEAVY)


class Storm:
    """Faults from now on, of the kinds named, until it is ended."""

    def __init__(self, scenes, kinds, seed):
        self.scenes = scenes
        self.over = threading.Event()
        self.errors = []
        self.light = [kind for kind in kinds if kind in LIGHT]
        self.heavy = [kind for kind in kinds if kind in HEAVY]
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
            kind = random.choice(self.light)
            scene = random.choice(scenes)
            scene.proxy.fault(name=kind, count=random.choice((1, 1, 1, 3)),
                              **LIGHT[kind]())

    def heavy_ones(self, scene):
        deck = []
        while not self.over.wait(random.uniform(0.1, 0.6)):
            deck = deck or self.deck(scene)
            if not deck:
                return
            kind = deck.pop()
            if HEAVY[kind](scene):
                scene.events.count(kind)

    def deck(self, scene):
        """All that can befall this cluster, in any order; TLS has only one of them."""
        deck = [kind for kind in self.heavy if kind != 'slow_tls']
        if scene.front and 'slow_tls' in self.heavy:
            deck += ['slow_tls'] * len(self.scenes)
        random.shuffle(deck)
        return deck

    def end(self):
        """Returns when everything is healed and no late copy is under way."""
        self.over.set()
        for thread in self.threads:
            thread.join()
        for scene in self.scenes:
            scene.proxy.clear()
        time.sleep(LATE_SECONDS)
        for scene in self.scenes:
            for pid in scene.cluster.stopped_backends():
                send(pid, signal.SIGCONT)
            if not scene.recovered():
                self.errors.append(scene.cluster.name + ' does not answer')
