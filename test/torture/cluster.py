# cluster.py: one PostgreSQL cluster of the torture: its settings, its processes,
# its shim.

import os
import shutil
import signal
import struct
import subprocess
import time

LEASE = 3.0             # seconds; the longest that the workload asks for
LEADERSHIP_LEASE = 2.5
LEADERSHIPS = 'c0', 'c1'  # every cluster stands for the first, and all but one for the other
HOST = 'dynamodb.torture'


def boottime():
    """The one true time, in microseconds."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


def wait_until(condition, seconds):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def state_of(pid):
    """A process's state letter, or None if it is gone."""
    try:
        with open('/proc/%d/stat' % pid) as f:
            return f.read().rsplit(')', 1)[1].split()[0]
    except (OSError, IndexError):
        return None


def send(pid, number):
    """Signals a process that may have ended meanwhile."""
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


class Shim:
    """The file that shim.c maps: offset, names_fail, refused, stood_still_us."""

    def __init__(self, path):
        self.path = path
        with open(path, 'wb') as f:
            f.write(struct.pack('qqqq', 0, 0, 0, 0))
        self.stood_still = 0

    def set(self, index, value):
        with open(self.path, 'r+b') as f:
            f.seek(8 * index)
            f.write(struct.pack('q', value))

    def set_offset(self, seconds):
        self.set(0, seconds)

    def set_names_fail(self, fail):
        self.set(1, int(fail))

    def refused(self):
        with open(self.path, 'rb') as f:
            return struct.unpack('qqqq', f.read())[2]

    def stand_still(self, seconds):
        self.stood_still += seconds
        self.set(3, int(self.stood_still * 1e6))


def refused_completions(log):
    """How often, by a server's log, DynamoDB refused one because the job was claimed anew."""
    with open(log, errors='replace') as f:
        return sum('was claimed anew before it could be finished' in line for line in f)


class Cluster:
    def __init__(self, work, number, network, settings):
        self.number = number
        self.name = 'cluster%d' % number
        self.sockets = work
        self.data = os.path.join(work, self.name)
        self.log = self.data + '.log'
        self.port = 5440 + number
        self.shim = Shim(self.data + '.shim')
        self.settings = {
            'listen_addresses': '',
            'unix_socket_directories': work,
            'port': self.port,
            'max_connections': 60,
            'shared_buffers': '32MB',
            'fsync': 'off',
            'restart_after_crash': 'on',
            'log_min_messages': 'warning',
            'log_line_prefix': '%m [%p] ',
            'shared_preload_libraries': 'torture,ddblock',
            'cluster_name': self.name,
            'ddblock.region': 'us-east-1',
            'ddblock.endpoint_url': network.url(number),
            'ddblock.ca_file': network.ca_file,
            'ddblock.lock_table': 'lockTable',
            'ddblock.connect_timeout': '1s',
            'ddblock.request_timeout': '1s',
            'ddblock.retry_timeout': network.retry_timeout,
            'ddblock.lease_duration': '%d ms' % (LEADERSHIP_LEASE * 1000),
            'ddblock.clock_takeover': 'on',
            'ddblock.clock_slack': '1s',
        }
        self.settings.update(settings)

    def refused_completions(self):
        return refused_completions(self.log)

    # ---- starting and stopping ----

    def create(self, keys):
        subprocess.run(['initdb', '-D', self.data, '-U', 'postgres', '-A', 'trust', '-N',
                        '--no-locale', '-E', 'UTF8'],
                       check=True, stdout=subprocess.DEVNULL)
        with open(os.path.join(self.data, 'postgresql.conf'), 'a') as f:
            for name, value in self.settings.items():
                f.write("%s = '%s'\n" % (name, value))
            f.write("include 'leaderships.conf'\n")
        self.write_keys(keys)
        self.write_leaderships(self.leaderships())

    def write_keys(self, keys):
        """Credentials, for the next start or reload."""
        path = os.path.join(self.data, 'postgresql.auto.conf')
        with open(path + '.new', 'w') as f:
            f.write("ddblock.access_key_id = '%s'\nddblock.secret_access_key = '%s'\n"
                    % keys)
        os.rename(path + '.new', path)

    def leaderships(self):
        return LEADERSHIPS[:1] if self.number == 2 else LEADERSHIPS

    def write_leaderships(self, names):
        """For the next start or reload."""
        path = os.path.join(self.data, 'leaderships.conf')
        with open(path + '.new', 'w') as f:
            f.write("ddblock.leaderships = '%s'\n" % ', '.join(names))
        os.rename(path + '.new', path)

    def pg_ctl(self, *arguments):
        environment = dict(os.environ, LD_PRELOAD=os.environ['TORTURE_SHIM_LIBRARY'],
                           TORTURE_SHIM=self.shim.path)
        result = subprocess.run(['pg_ctl', '-D', self.data, '-l', self.log, '-w',
                                 '-t', '60', *arguments], env=environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
        return result.returncode == 0

    def start(self):
        if not self.pg_ctl('start'):
            raise RuntimeError('%s did not start, see %s' % (self.name, self.log))

    def stop(self):
        return self.pg_ctl('stop', '-m', 'fast')

    def stop_at_once(self):
        return self.pg_ctl('stop', '-m', 'immediate')

    def reload(self):
        send(self.postmaster(), signal.SIGHUP)

    def stand_still(self, seconds):
        """As its machine does when a hypervisor stops it: no clock of it notices."""
        pids = [self.postmaster()]
        try:
            self.stop_processes(pids)       # from here on there are no new children
            pids += [pid for pid, _ in self.processes()]
            self.stop_processes(pids)
            began = boottime()
            time.sleep(seconds)
            self.shim.stand_still((boottime() - began) / 1e6)
        finally:
            for pid in reversed(pids):
                send(pid, signal.SIGCONT)

    def stop_processes(self, pids):
        """A child that has just ended stays a zombie while the postmaster is stopped."""
        for pid in pids:
            send(pid, signal.SIGSTOP)
        if not wait_until(lambda: all(state_of(pid) in ('T', 'Z', None) for pid in pids), 30):
            raise RuntimeError('%s cannot be stopped: %s'
                               % (self.name, [state_of(pid) for pid in pids]))

    def remove(self):
        shutil.rmtree(self.data, ignore_errors=True)

    # ---- SQL ----

    def sql(self, text, seconds=30):
        result = subprocess.run(
            ['psql', '-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-h', self.sockets,
             '-p', str(self.port), '-U', 'postgres', '-d', 'postgres', '-c', text],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=seconds)
        if result.returncode != 0:
            raise RuntimeError('%s: %s' % (self.name, result.stderr.strip()))
        return result.stdout.strip()

    def sql_patiently(self, text):
        """What can be repeated: a request to DynamoDB may take too long for once."""
        deadline = time.monotonic() + 90
        while True:
            try:
                return self.sql(text, 60)
            except RuntimeError as error:
                if 'DynamoDB' not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.5)

    def file(self, path):
        with open(path) as f:
            self.sql(f.read())

    def answers(self):
        try:
            return self.sql('SELECT 1', 10) == '1'
        except (RuntimeError, subprocess.TimeoutExpired):
            return False

    # ---- processes ----

    def postmaster(self):
        with open(os.path.join(self.data, 'postmaster.pid')) as f:
            return int(f.readline())

    def processes(self):
        """(pid, title) of the postmaster's children."""
        found = []
        try:
            parent = self.postmaster()
            with open('/proc/%d/task/%d/children' % (parent, parent)) as f:
                children = [int(pid) for pid in f.read().split()]
        except (OSError, ValueError):
            return found
        for pid in children:
            try:
                with open('/proc/%d/cmdline' % pid) as f:
                    found.append((pid, f.read().replace('\0', ' ').strip()))
            except OSError:
                continue
        return found

    def worker(self):
        for pid, title in self.processes():
            if 'ddblock worker' in title:
                return pid
        return None

    def backends(self):
        return [pid for pid, title in self.processes() if ' torture postgres ' in title]

    def stopped_backends(self):
        return [pid for pid in self.backends() if state_of(pid) == 'T']
