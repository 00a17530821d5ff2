# network.py: what lies between the torture's clusters and DynamoDB, and an
# operator's way around it.
#
# Each cluster has a counting proxy of its own, so that it can be cut off alone.

import http.client
import json
import os
import select
import socket
import ssl
import subprocess
import threading
import time

TABLE = 'lockTable'


class Proxy:
    def __init__(self, work, number, upstream):
        self.port_file = os.path.join(work, 'proxy%d.port' % number)
        self.process = subprocess.Popen(
            ['/usr/bin/python3', 'test/double/counting-proxy', '0',
             '127.0.0.1:%d' % upstream, self.port_file],
            stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        self.port = None
        while self.port is None:
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError('the proxy did not start')
            time.sleep(0.02)
            self.port = self.read_port()

    def read_port(self):
        try:
            with open(self.port_file) as f:
                line = f.readline()
            return int(line) if line.endswith('\n') else None
        except OSError:
            return None

    def command(self, method, name, argument=None):
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=30)
        try:
            connection.request(method, '/proxy/' + name,
                               json.dumps(argument) if argument else '')
            reply = connection.getresponse()
            data = reply.read()
            if reply.status != 200:
                raise RuntimeError('proxy: %s: %s' % (name, data))
            return json.loads(data)
        finally:
            connection.close()

    def fault(self, **spec):
        self.command('POST', 'fault', spec)

    def clear(self):
        self.command('POST', 'clear')

    def struck(self):
        return self.command('GET', 'state')['struck']

    def stop(self):
        self.process.terminate()
        self.process.wait()


class TlsFront:
    """Speaks TLS in front of a proxy; its handshakes can be slow."""

    def __init__(self, upstream, certificate, key):
        self.upstream = upstream
        self.delay = 0.0
        self.slow = 0                   # handshakes that were delayed
        self.lock = threading.Lock()
        self.connections = set()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate, key)
        self.listener = socket.create_server(('127.0.0.1', 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        try:
            if self.delay > 0:
                with self.lock:
                    self.slow += 1
                time.sleep(self.delay)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.context.wrap_socket(client, server_side=True) as secure, \
                    socket.create_connection(('127.0.0.1', self.upstream)) as plain:
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self.lock:
                    self.connections.add(plain)
                self.relay(secure, plain)
                with self.lock:
                    self.connections.discard(plain)
        except (OSError, ValueError):
            client.close()

    @staticmethod
    def relay(secure, plain):
        while True:
            readable = [secure] if secure.pending() else \
                select.select([secure, plain], [], [])[0]
            for source, sink in ((secure, plain), (plain, secure)):
                if source in readable:
                    data = source.recv(65536)
                    if not data:
                        return
                    sink.sendall(data)

    def hang_up(self):
        """Ends all connections, so that the next request needs a handshake."""
        with self.lock:
            for plain in self.connections:
                try:
                    plain.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            self.connections.clear()


class Operator:
    """Somebody with a console and the right to change the lock table."""

    def __init__(self, port):
        self.port = port

    def call(self, operation, body):
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=30)
        try:
            connection.request('POST', '/', json.dumps(body), {
                'Content-Type': 'application/x-amz-json-1.0',
                'X-Amz-Target': 'DynamoDB_20120810.' + operation,
                'Authorization': 'AWS4-HMAC-SHA256 Credential=operator/20260101/us-east-1/'
                                 'dynamodb/aws4_request, SignedHeaders=host, Signature=0'})
            reply = connection.getresponse()
            data = json.loads(reply.read())
            if reply.status != 200:
                raise RuntimeError('%s: %s' % (operation, data))
            return data
        finally:
            connection.close()

    def items(self):
        found, start = [], {}
        while True:
            page = self.call('Scan', dict(TableName=TABLE, ConsistentRead=True, **start))
            found += page['Items']
            if 'LastEvaluatedKey' not in page:
                return found
            start = {'ExclusiveStartKey': page['LastEvaluatedKey']}

    def delete(self, name):
        self.call('DeleteItem', {'TableName': TABLE, 'Key': {'key': {'S': name}}})

    def take(self, name, version):
        """Edits the item into one that somebody else holds; False: there is none."""
        try:
            self.call('UpdateItem', {
                'TableName': TABLE, 'Key': {'key': {'S': name}},
                'UpdateExpression': 'SET ownerName = :o, recordVersionNumber = :v, '
                                    'leaseDuration = :l REMOVE isReleased',
                'ConditionExpression': 'attribute_exists(ownerName)',
                'ExpressionAttributeValues': {
                    ':o': {'S': 'operator'}, ':v': {'S': version}, ':l': {'S': '2000'}}})
            return True
        except RuntimeError as error:
            if 'ConditionalCheckFailed' in str(error):
                return False
            raise
