# queue_requests.py: the requests of the project's queues (src/queue/queue_request.c), made up at
# random for "differential", some of them wrong.

import re
import uuid

TABLE = 'queueTable'
CREATE = {
    'TableName': TABLE, 'BillingMode': 'PAY_PER_REQUEST',
    'AttributeDefinitions': [{'AttributeName': n, 'AttributeType': t}
                             for n, t in (('pk', 'S'), ('sk', 'S'), ('ready', 'S'), ('due', 'N'))],
    'KeySchema': [{'AttributeName': 'pk', 'KeyType': 'HASH'},
                  {'AttributeName': 'sk', 'KeyType': 'RANGE'}],
    'GlobalSecondaryIndexes': [{
        'IndexName': 'ready',
        'KeySchema': [{'AttributeName': 'ready', 'KeyType': 'HASH'},
                      {'AttributeName': 'due', 'KeyType': 'RANGE'}],
        'Projection': {'ProjectionType': 'INCLUDE',
                       'NonKeyAttributes': ['retryAt', 'attempts', 'paused']}}],
}
CLAIMABLE = 'attribute_not_exists(#paused) AND (attribute_not_exists(#retryAt) OR #retryAt <= :now)'
SEEN = {'ReturnValuesOnConditionCheckFailure': 'ALL_OLD'}


def expressions(values, **texts):
    """With exactly the names and the values that the texts use; "#name" is "name"."""
    used = set(re.findall(r'[#:]\w+', ' '.join(texts.values())))
    body = dict(texts)
    body['ExpressionAttributeNames'] = {u: u[1:] for u in used if u[0] == '#'}
    found = {u: values[u] for u in used if u[0] == ':'}
    if found:
        body['ExpressionAttributeValues'] = found
    return body


class QueueRequests:
    def __init__(self, rng):
        self.rng = rng
        self.last = None        # transaction
        # DynamoDB Local remembers the tokens of an earlier run.
        self.run = uuid.uuid4().hex[:20]

    def small(self, least=0, most=4):
        return {'N': str(self.rng.randint(least, most))}

    def resource(self):
        return {'S': 'r#q#' + self.rng.choice('aab')}

    def head_key(self):
        return {'pk': self.resource(), 'sk': {'S': 'head'}}

    def job_key(self):
        return {'pk': self.resource(), 'sk': {'S': 'job#%03d' % self.rng.randint(1, 4)}}

    def base(self, **more):
        body = dict({'TableName': TABLE}, **more)
        if self.rng.random() < 0.4:
            body['ReturnConsumedCapacity'] = 'TOTAL'
        return body

    def head(self, update, condition):
        values = {':before': self.small(), ':number': self.small(1), ':token': self.small(1, 9),
                  ':now': self.small(5, 9), ':later': self.small(7, 12), ':zero': {'N': '0'},
                  ':one': {'N': '1'}, ':seq': self.small(), ':error': {'S': 'why'}}
        body = dict({'TableName': TABLE, 'Key': self.head_key()}, **SEEN,
                    **expressions(values, UpdateExpression=update, ConditionExpression=condition))
        self.name_riders(body)
        return body

    def name_riders(self, body):
        """Of a job that rides on a head, the name is the number."""
        for name in body['ExpressionAttributeNames']:
            if name.startswith('#job'):
                body['ExpressionAttributeNames'][name] = 'job#%d' % (
                    int(name[4:]) if name[4:] else self.rng.randint(1, 4))

    def head_update(self):
        ours = '#token = :token AND #done = :before'
        update, condition = self.rng.choice([
            ('SET #token = :token, #retryAt = :later, #attempts = if_not_exists(#attempts, :zero) + :one',
             '#done < #seq AND #due <= :now AND ' + CLAIMABLE +
             ' AND (attribute_not_exists(#token) OR #token < :token)'),
            ('SET #token = :token, #due = :later, #attempts = if_not_exists(#attempts, :zero) + :one'
             ' REMOVE #retryAt', '#done < #seq AND #due <= :now AND ' + CLAIMABLE),
            ('SET #done = :number, #due = :now REMOVE #retryAt, #attempts, #lastError, #job',
             self.rng.choice([ours + ' AND #seq > :number', '#done = :before'])),
            ('SET #done = :number REMOVE #ready, #due, #retryAt, #attempts, #lastError, #job',
             self.rng.choice([ours + ' AND #seq = :number', '#seq = :number'])),
            ('SET #due = :later, #lastError = :error REMOVE #retryAt', ours),
            ('REMOVE #job', '#done < :before'),
            ('SET #done = #seq REMOVE #ready, #due, #retryAt, #attempts, #lastError' +
             self.rng.choice(['', ', #job2', ', #job2, #job4']), '#seq = :seq AND #done < #seq')])
        body = self.base(**self.head(update, condition))
        if self.rng.random() < 0.5:
            body['ReturnValues'] = 'ALL_NEW'
        return 'UpdateItem', body

    def push_head(self, pk, seq, jobs, rides):
        values = {':seq': {'N': str(seq)}, ':last': {'N': str(seq + jobs)}, ':zero': {'N': '0'},
                  ':queue': {'S': self.rng.choice('qqp')}, ':now': self.small(5, 9)}
        riders = ''
        for number in range(seq + 1, seq + jobs + 1) if rides else ():
            riders += ', #job%d = :job%d' % (number, number)
            values[':job%d' % number] = {'M': {'payload': {'S': '{}'}, 'pushedAt': self.small(5, 9)}}
        body = dict({'TableName': TABLE, 'Key': {'pk': pk, 'sk': {'S': 'head'}}}, **SEEN,
                    **expressions(values, UpdateExpression=(
                        'SET #seq = :last, #done = if_not_exists(#done, :zero), '
                        '#ready = :queue, #due = if_not_exists(#due, :now)' + riders),
                        ConditionExpression='#seq = :seq' if seq else 'attribute_not_exists(#seq)'))
        self.name_riders(body)
        return {'Update': body}

    def push(self):
        pk = self.resource()
        seq, jobs = self.rng.randint(0, 3), self.rng.randint(1, 2)
        rides = self.rng.random() < 0.5
        writes = [self.push_head(pk, seq, jobs, rides)]
        for number in range(seq + 1, seq + jobs + 1):
            if not rides:
                writes.append({'Put': dict({
                    'TableName': TABLE, 'Item': {
                        'pk': pk, 'sk': {'S': 'job#%03d' % number}, 'payload': {'S': '{}'},
                        'pushedAt': self.small(5, 9)}},
                    **expressions({}, ConditionExpression='attribute_not_exists(#pk)'))})
            if self.rng.random() < 0.4:
                writes.append({'Put': dict({
                    'TableName': TABLE, 'Item': {
                        'pk': {'S': 'id#q'}, 'sk': {'S': 'id%d' % number}, 'resource': {'S': 'a'},
                        'number': {'N': str(number)}, 'ttl': self.small(5, 9)}}, **SEEN,
                    **expressions({':now': self.small(5, 9)}, ConditionExpression=(
                        'attribute_not_exists(#pk) OR #ttl < :now')))})
        if self.rng.random() < 0.03:
            writes.append(self.rng.choice(writes))
        return self.transaction(writes)

    def cancel(self):
        pk = self.resource()
        check = self.head('SET #due = :now', '#done < :before')
        del check['UpdateExpression'], check['ExpressionAttributeNames']['#due']
        del check['ExpressionAttributeValues'][':now']
        check['Key']['pk'] = pk
        gone = dict({'TableName': TABLE, 'Key': dict(self.job_key(), pk=pk)}, **SEEN,
                    **expressions({}, ConditionExpression='attribute_exists(#pk)'))
        return self.transaction([{'ConditionCheck': check}, {'Delete': gone}])

    def transaction(self, writes):
        body = {'TransactItems': writes}
        if self.rng.random() < 0.4:
            body['ReturnConsumedCapacity'] = 'TOTAL'
        if self.rng.random() < 0.7:
            body['ClientRequestToken'] = '%s-%x' % (self.run, self.rng.getrandbits(48))
        self.last = body
        return 'TransactWriteItems', body

    def repeated(self):
        """The same again, or something else under its token."""
        if self.last is None or 'ClientRequestToken' not in self.last:
            return self.push()
        if self.rng.random() < 0.7:
            return 'TransactWriteItems', self.last
        token = self.last['ClientRequestToken']
        return 'TransactWriteItems', dict(self.push()[1], ClientRequestToken=token)

    def delete_job(self):
        body = self.base(Key=self.job_key())
        if self.rng.random() < 0.5:
            body.update(expressions({}, ConditionExpression='attribute_not_exists(#pk)'))
        return 'DeleteItem', body

    def find(self):
        due = self.rng.random() < 0.7
        body = self.base(IndexName='ready', **expressions(
            {':queue': {'S': self.rng.choice('qqp')}, ':now': self.small(5, 12)},
            KeyConditionExpression='#ready = :queue' + (' AND #due <= :now' if due else ''),
            **({'FilterExpression': CLAIMABLE} if self.rng.random() < 0.7 else {})))
        return 'Query', self.paged(body)

    def list_jobs(self):
        body = self.base(ConsistentRead=True, **expressions(
            {':pk': self.resource(), ':from': {'S': 'job#001'}, ':to': {'S': 'job#003'}},
            KeyConditionExpression='#pk = :pk' + self.rng.choice(
                ['', ' AND #sk BETWEEN :from AND :to']),
            **self.rng.choice([{}, {'ProjectionExpression': '#pk, #sk, #payload'}])))
        return 'Query', self.paged(body)

    def paged(self, body):
        if self.rng.random() < 0.6:
            body['Limit'] = self.rng.randint(1, 3)
        return body

    def wrong(self):
        body = self.list_jobs()[1]
        if self.rng.random() < 0.5:
            body['Limit'] = 0
        else:
            body['IndexName'] = 'missing'
        return 'Query', body

    def read(self):
        return 'GetItem', self.base(Key=self.rng.choice([self.head_key, self.job_key])(),
                                    ConsistentRead=True)

    def request(self):
        make = self.rng.choices(
            [self.push, self.head_update, self.repeated, self.cancel, self.delete_job, self.find,
             self.list_jobs, self.read, self.wrong], [30, 25, 6, 8, 6, 12, 8, 6, 1])[0]
        return make()
