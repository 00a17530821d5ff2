# network.py: what lies between the torture's clusters and DynamoDB, and an
# operator's way around it.
#
# There are two: the DynamoDB double, which speaks TLS, checks signatures and
# breaks by itself, and DynamoDB Local, which does none of that, behind a
# counting proxy for each cluster.  Both make the same of themselves:
#
#	network.kinds			the kinds of faults that it can make
#	network.url(n), ca_file	for cluster n
#	network.struck()		how often faults of each kind have struck
#	network.clear()			ends all faults, and what hangs because of them
#	network.beat()			asks something, without any fault
#	network.pace			"slow" if it may be so slow by itself that leases are lost
#	network.retry_timeout	of a cluster's requests
#	network.date_error		by how much Dates are wrong, either way, in seconds
#	network.link(n)			one cluster's, with
#		keys()				its credentials, a pair
#		strike(kind)		one or a few of the next requests meet that fault
#		cut(), heal()		nothing gets through meanwhile
#		renew()				from now on there are new keys
#		expire(keys)		these are refused

import http.client
import json
import os
import random
import subprocess
import threading
import time

from cluster import HOST, LEASE

TABLE = 'lockTable'
QUEUE_TABLE = 'queueTable'
SINGLE_WRITES = ('UpdateItem', 'UpdateItem', 'TransactWriteItems')
STRIKES = (1, 1, 1, 3)


def post(port, path, body, headers=None):
    connection = http.client.HTTPConnection('127.0.0.1', port, timeout=30)
    try:
        connection.request('POST', path, json.dumps(body), headers or {})
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())
    finally:
        connection.close()


def read_port(path, process):
    """Waits for the file in which a program says that it listens."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with open(path) as f:
                line = f.readline()
            if line.endswith('\n'):
                return int(line)
        except OSError:
            pass
        time.sleep(0.02)
    raise RuntimeError('%s did not start' % process.args[0])


def strike_options(kind):
    """How a fault of that kind strikes one or a few of the next requests."""
    options = dict(count=random.choice(STRIKES), applied=random.choice((True, False)))
    if kind == 'duplicate':
        options['operation'] = random.choice(SINGLE_WRITES)
    elif kind == 'late_apply':
        options['operation'] = random.choice(SINGLE_WRITES + ('BatchExecuteStatement',))
    elif kind == 'conflict':
        options['operation'] = random.choice(('UpdateItem', 'BatchExecuteStatement'))
    elif kind in ('lose_reply', 'late_reply') and random.random() < 0.3:
        options['operation'] = 'TransactWriteItems'     # pushes are few
    if kind.startswith('late'):
        options['delay_ms'] = late_ms()
    return options


class Table:
    """What somebody with a console and the right to change the table can do."""

    def call(self, operation, body):
        """(status, reply), without any fault"""
        raise NotImplementedError

    def must(self, operation, body):
        status, reply = self.call(operation, body)
        if status != 200:
            raise RuntimeError('%s: %s' % (operation, reply))
        return reply

    def items(self, table=TABLE):
        found, start = [], {}
        while True:
            page = self.must('Scan', dict(TableName=table, ConsistentRead=True, **start))
            found += page['Items']
            if 'LastEvaluatedKey' not in page:
                return found
            start = {'ExclusiveStartKey': page['LastEvaluatedKey']}

    def delete(self, name):
        self.must('DeleteItem', {'TableName': TABLE, 'Key': {'key': {'S': name}}})

    def make_due(self, head):
        """The time of a resource's next attempt has come."""
        status, reply = self.call('UpdateItem', {
            'TableName': QUEUE_TABLE, 'Key': {'pk': head['pk'], 'sk': head['sk']},
            'UpdateExpression': 'SET #due = :past REMOVE retryAt',
            'ConditionExpression': '#due = :due AND ' + (
                'attempts = :attempts' if 'attempts' in head else 'attribute_not_exists(attempts)'),
            'ExpressionAttributeNames': {'#due': 'due'},
            'ExpressionAttributeValues': {
                ':past': {'N': '1'}, ':due': head['due'],
                **({':attempts': head['attempts']} if 'attempts' in head else {})}})
        if status != 200 and 'ConditionalCheckFailed' not in reply['__type']:
            raise RuntimeError('UpdateItem: %s' % reply)

    def make_all_due(self):
        for item in self.items(QUEUE_TABLE):
            if item['sk']['S'] == 'head' and 'due' in item:
                self.make_due(item)

    def take(self, name, version):
        """Edits the item into one that somebody else holds; False: there is none."""
        status, reply = self.call('UpdateItem', {
            'TableName': TABLE, 'Key': {'key': {'S': name}},
            'UpdateExpression': 'SET ownerName = :o, recordVersionNumber = :v, '
                                'leaseDuration = :l REMOVE isReleased',
            'ConditionExpression': 'attribute_exists(ownerName)',
            'ExpressionAttributeValues': {
                ':o': {'S': 'operator'}, ':v': {'S': version}, ':l': {'S': '2000'}}})
        if status != 200 and 'ConditionalCheckFailed' not in reply['__type']:
            raise RuntimeError('UpdateItem: %s' % reply)
        return status == 200


# ---- the double ----

class DoubleLink:
    def __init__(self, network, number):
        self.network = network
        self.name = 'key%d' % number
        self.count = 0
        self.lock = threading.Lock()
        self.pending = []
        self.cut_id = None
        self.renew()

    def keys(self):
        return '%s.%d' % (self.name, self.count), 'secret%d' % self.count

    def renew(self):
        self.count += 1
        key, secret = self.keys()
        self.network.command('credentials', key=key, secret=secret)

    def expire(self, keys):
        self.network.command('credentials', key=keys[0],
                             state=random.choice(('expired', 'gone')))

    def fault(self, kind, **options):
        with self.lock:
            return self.add_fault(kind, **options)

    def add_fault(self, kind, **options):
        fault = self.network.command('fault', kind=kind, key=self.keys()[0], **options)
        self.pending.append(fault['id'])
        return fault['id']

    def strike(self, kind):
        options = strike_options(kind)
        if kind == 'late_apply':
            options['answer'] = random.choice(('none', '500', 'close'))
        if kind == 'duplicate':
            options['delay_ms'] = random.choice((0, 300))
        self.fault(kind, **options)

    def cut(self):
        """Faults that come first would let their requests through."""
        with self.lock:
            for fault in self.pending:
                self.network.command('clear', id=fault)
            self.pending.clear()
            self.cut_id = self.add_fault('partition', refuse=random.choice((True, False)))
            self.network.conflict()

    def heal(self):
        self.network.command('clear', id=self.cut_id)

    def slow_tls(self, seconds, delay):
        """Handshakes, and some connections that end, so that there are any."""
        fault = self.network.command('fault', kind='slow_tls', delay_ms=int(delay * 1000))
        self.fault('reset', count=8)
        time.sleep(seconds)
        self.network.command('clear', id=fault['id'])


class DoubleNetwork(Table):
    kinds = ('drop', 'lose_reply', 'duplicate', 'late_apply', 'late_reply', 'reset',
             'http_500', 'http_503', 'throttle', 'conflict', 'truncate', 'corrupt',
             'wrong_crc')
    date_error = 0.5        # half of the slack
    pace = ''
    retry_timeout = '5s'

    def __init__(self, work, clusters, certificate, key):
        port_file = os.path.join(work, 'double.port')
        self.ca_file = certificate
        self.process = subprocess.Popen(
            [os.environ['TORTURE_DOUBLE'], '--port-file', port_file, '--tls', certificate,
             key], stdin=subprocess.DEVNULL)
        self.port = read_port(port_file, self.process)
        self.links = [DoubleLink(self, number) for number in range(clusters)]
        self.command('clock', date_error_ms=int(self.date_error * 1000))
        self.conflicts = []
        self.lock = threading.Lock()
        self.conflict()

    def command(self, name, **arguments):
        status, reply = post(self.port, '/_double', dict(arguments, command=name))
        if status != 200:
            raise RuntimeError('double: %s: %s' % (name, reply))
        return reply

    def url(self, _number):
        return 'https://%s:%d' % (HOST, self.port)

    def link(self, number):
        return self.links[number]

    def call(self, operation, body):
        result = self.command('call', target=operation, body=body)
        return result['status'], result['reply']

    def struck(self):
        return self.command('stats')['faults']

    def beat(self):
        self.command('stats')

    def clear(self):
        self.command('clear')
        self.conflict()

    def conflict(self):
        """As a table whose items are written in several Regions, with strong consistency.
        Comes after all other faults: a batch of which one statement fails is let through."""
        rate = float(os.environ.get('TORTURE_CONFLICTS', 0))
        with self.lock:
            for fault in self.conflicts:
                self.command('clear', id=fault)
            self.conflicts = [
                self.command('fault', kind='conflict', operation=operation, probability=rate,
                             applied=False, error='ReplicatedWriteConflictException')['id']
                for operation in ('UpdateItem', 'BatchExecuteStatement') if rate > 0]

    def stop(self):
        self.process.terminate()
        self.process.wait()


# ---- DynamoDB Local ----

class LocalLink:
    """A cluster's counting proxy."""

    ERRORS = {
        'http_500': dict(),
        'http_503': dict(status=503, type='ServiceUnavailable'),
        'throttle': dict(status=400, type='ThrottlingException'),
        'conflict': dict(status=400, type='TransactionConflictException'),
    }

    def __init__(self, work, number, upstream):
        port_file = os.path.join(work, 'proxy%d.port' % number)
        self.count = 1
        self.lock = threading.Lock()
        self.process = subprocess.Popen(
            ['/usr/bin/python3', 'test/double/counting-proxy', '0',
             '127.0.0.1:%d' % upstream, port_file], stdin=subprocess.DEVNULL)
        self.port = read_port(port_file, self.process)

    def command(self, name, body=None):
        status, reply = post(self.port, '/proxy/' + name, body)
        if status != 200:
            raise RuntimeError('proxy: %s: %s' % (name, reply))

    def fault(self, kind, **options):
        self.command('fault', dict(options, kind=kind))

    def keys(self):
        return 'key%d' % self.count, 'secret%d' % self.count

    def renew(self):
        self.count += 1
        self.heal()

    def expire(self, keys):
        """The proxy does not see keys: those that are not the last ones do not matter."""
        if keys == self.keys():
            self.fault('error', name='expired request', count=-1, status=400,
                       type='ExpiredTokenException')

    def strike(self, kind):
        options = dict(strike_options(kind), name=kind)
        if kind in self.ERRORS:
            options.update(self.ERRORS[kind])
            options['applied'] &= kind.startswith('http')
            kind = 'error'
        with self.lock:
            self.fault(kind, **options)

    def cut(self):
        """Faults that come first would let their requests through."""
        with self.lock:
            self.heal()
            self.fault('drop', name='cut request', count=-1)

    def heal(self):
        self.command('clear')

    def struck(self):
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=30)
        try:
            connection.request('GET', '/proxy/state')
            return json.loads(connection.getresponse().read())['struck']
        finally:
            connection.close()

    def stop(self):
        self.process.terminate()
        self.process.wait()


class LocalNetwork(Table):
    kinds = tuple(kind for kind in DoubleNetwork.kinds if kind != 'wrong_crc')
    ca_file = ''
    date_error = 0
    pace = 'slow'           # on a busy machine: see I6 in check
    retry_timeout = '30s'   # longer than a slow probe waits

    def __init__(self, work, clusters):
        with open(os.path.join(work, 'dynamodb', 'port')) as f:
            self.port = int(f.read())
        self.links = [LocalLink(work, number, self.port) for number in range(clusters)]

    def url(self, number):
        return 'http://%s:%d' % (HOST, self.links[number].port)

    def link(self, number):
        return self.links[number]

    def call(self, operation, body):
        return post(self.port, '/', body, {
            'Content-Type': 'application/x-amz-json-1.0',
            'X-Amz-Target': 'DynamoDB_20120810.' + operation,
            'Authorization': 'AWS4-HMAC-SHA256 Credential=operator/20260101/us-east-1/'
                             'dynamodb/aws4_request, SignedHeaders=host, Signature=0'})

    def struck(self):
        counts = {}
        for link in self.links:
            for kind, count in link.struck().items():
                counts[kind] = counts.get(kind, 0) + count
        return counts

    def beat(self):
        self.call('DescribeTable', {'TableName': TABLE})

    def clear(self):
        for link in self.links:
            link.heal()

    def stop(self):
        for link in self.links:
            link.stop()


def late_ms():
    """Around the longest lease's end, as a late copy or reply is most trouble."""
    return int(1000 * LEASE * random.uniform(0.8, 1.3))
