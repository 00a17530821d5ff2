#!/usr/bin/python3
#
# test_queues.py: a test of queues.py with small histories, written by hand: each bad one must
# be found out for the right promise.

import json
import sys

from test_check import GOOD, S, WRITTEN, found

A, B, C = '0.0.1', '1.0.1', '2.0.1'


def call(op, session, sent, jobs='-', token=0, resource='r0', state='00000', detail='',
         took=1000):
    """A line of the history; the server's times lie just inside the client's."""
    known = state == '00000' and op not in ('begin', 'commit')
    sent = int(sent)
    return '\t'.join(map(str, (op, session, 'q0', resource, token, sent, sent + took,
                               sent + 1 if known else 0, sent + took - 1 if known else 0,
                               state, jobs, detail)))


def push(session, sent, jobs, **more):
    return call('push', session, sent, jobs, **more)


def claim(session, sent, job, token, **more):
    return call('next', session, sent, job, token, detail='1', **more)


def finish(session, sent, job, token, commit='00000', once='t', **more):
    """Work and completion in one transaction."""
    return [call('begin', session, sent), call('work', session, sent, job, token, detail=once),
            call('complete', session, sent + 1000, job, token, detail='in transaction', **more),
            call('commit', session, sent + 2000, job, token, state=commit)]


def in_work(session, sent, job, token):
    return [claim(session, sent, job, token)] + finish(session, sent + 10000, job, token)


def head(done, seq, resource='r0'):
    return {'pk': {'S': 'r#q0#' + resource}, 'sk': {'S': 'head'}, 'seq': {'N': str(seq)},
            'done': {'N': str(done)}}


def waiting(uid, number, resource='r0'):
    return {'pk': {'S': 'r#q0#' + resource}, 'sk': {'S': 'job#%019d' % number},
            'payload': {'S': json.dumps({'uid': uid})}}


def riding(head, uid, number):
    return dict(head, **{'job#%019d' % number: {'M': {'payload': {'S': json.dumps({'uid': uid})}}}})


def dead(uid, number, attempts=3):
    return {'pk': {'S': 'dead#q0'}, 'sk': {'S': '%019d#r0' % number}, 'resource': {'S': 'r0'},
            'number': {'N': str(number)}, 'payload': {'S': json.dumps({'uid': uid})},
            'attempts': {'N': str(attempts)}}


def worked(*jobs, once='t'):
    return ['q0\tr0\t%d\t%d\t%s' % (number, uid, once) for uid, number in jobs]


def outbox(uid, sent, *end):
    return [call('begin', A, sent), call('outbox', A, sent, '%d:0' % uid)] + list(end)


# Job 1 is worked off; job 2 waits, and is worked off in the end.
PUSHES = [push(A, 1 * S, '1:1'), push(A, 2 * S, '2:2')]
FIRST = in_work(B, 3 * S, '1:1', 10)
SECOND = in_work(C, 50 * S, '2:2', 20)
CALLS = PUSHES + FIRST + SECOND
BEFORE = [head(1, 2), waiting(2, 2)]
AFTER = [head(2, 2)]
DEPTHS = ['q0\tr0\t1']
DONE = worked((1, 1), (2, 2))
CALM = ['calm\t-\t%d\t%d\t' % (1 * S, 40 * S), 'drain\t-\t%d\t%d\t' % (49 * S, 60 * S)]

# name, promises, calls; then, if they are others: before, after, depths, worked, events
CASES = [
    ('nothing wrong', None, CALLS, {}),

    ('a job that rides on the head', None, CALLS, dict(before=[riding(head(1, 2), 2, 2)])),
    ('a finished job rides on', 'Q5', CALLS, dict(after=[riding(head(2, 2), 2, 2)])),

    # Q1
    ('a job that was pushed is not there', 'Q1', CALLS + [push(A, 4 * S, '3:3')], {}),
    ('a number without its job', 'Q1', CALLS, dict(before=[head(1, 2)])),
    ('a job without its work', 'Q1', CALLS, dict(worked=worked((1, 1)))),
    ('work is done, and its job is completed by nobody', 'Q3', PUSHES + FIRST[:1] + SECOND, {}),
    ('a job that nobody had', 'Q1', PUSHES + SECOND, {}),
    ('a job that died too early', 'Q1', CALLS, dict(
        after=AFTER + [dead(2, 2, attempts=2)])),
    ('a job is completed before its push has its answer', None,
     PUSHES[1:] + FIRST + [push(A, 1 * S, '1:1', took=10 * S)] + SECOND, {}),
    ('a push without an answer, and no job', None,
     CALLS + [push(A, 4 * S, '3:0', state='08006')], {}),
    ('a push without an answer, and a job', None,
     CALLS + [push(A, 4 * S, '3:0', state='08006')] + in_work(B, 51 * S, '3:3', 30), dict(
         before=[head(1, 3), waiting(2, 2), waiting(3, 3)], after=[head(3, 3)],
         depths=['q0\tr0\t2'], worked=DONE + worked((3, 3)))),
    ('a job of the outbox', None, CALLS + outbox(3, 4 * S, call('commit', A, 5 * S)) +
     in_work(B, 51 * S, '3:3', 30), dict(
         before=[head(1, 3), waiting(2, 2), waiting(3, 3)], after=[head(3, 3)],
         depths=['q0\tr0\t2'], worked=DONE + worked((3, 3)))),
    ('a job of the outbox is lost', 'Q1',
     CALLS + outbox(3, 4 * S, call('commit', A, 5 * S)), {}),
    ('a job of the outbox, and its COMMIT has no answer', None,
     CALLS + outbox(3, 4 * S, call('commit', A, 5 * S, state='lost')), {}),
    ('a job of a transaction that was rolled back', 'Q1',
     CALLS + outbox(3, 4 * S, call('begin', A, 5 * S), call('commit', A, 6 * S)) +
     in_work(B, 51 * S, '3:3', 30), dict(
         before=[head(1, 3), waiting(2, 2), waiting(3, 3)], after=[head(3, 3)],
         depths=['q0\tr0\t2'], worked=DONE + worked((3, 3)))),
    ('a job that was never pushed', 'Q1', CALLS + in_work(B, 51 * S, '9:3', 30), {}),
    ('a completion in a transaction that was rolled back', 'Q3',
     PUSHES + FIRST[:-1] + SECOND, {}),
    ('a completion whose COMMIT fails', 'Q3',
     PUSHES + [claim(B, 3 * S, '1:1', 10)] + finish(B, 4 * S, '1:1', 10, commit='LK001') + SECOND,
     {}),
    ('a completion whose COMMIT has no answer', None,
     PUSHES + [claim(B, 3 * S, '1:1', 10)] + finish(B, 4 * S, '1:1', 10, commit='lost') + SECOND,
     {}),
    ('a completion without a transaction', None,
     PUSHES + [claim(B, 3 * S, '1:1', 10), call('work', B, 4 * S, '1:1', 10, detail='t'),
               call('complete', B, 5 * S, '1:1', 10)] + SECOND, {}),
    ('the same, and it fails', 'Q3',
     PUSHES + [claim(B, 3 * S, '1:1', 10), call('work', B, 4 * S, '1:1', 10, detail='t'),
               call('complete', B, 5 * S, '1:1', 10, state='LK001')] + SECOND, {}),

    # Q2
    ('a job twice, after a failure', None,
     PUSHES + [claim(B, 2.5 * S, '1:1', 9), call('fail', B, 2.6 * S, '1:1', 9)] + FIRST + SECOND,
     {}),
    ('a redrive after another one', None, CALLS + [call('redrive', A, 5 * S, '2:2', state='42704')],
     {}),
    ('a job twice, in two clusters', None, CALLS, dict(more=worked((1, 1)))),
    ('a job twice in one cluster', 'Q2', CALLS, dict(worked=DONE + worked((1, 1)))),
    ('the same without ddb_queue_mark_done()', None, CALLS, dict(
        worked=worked((1, 1), (2, 2), (1, 1), once='f'))),
    ('a job again that is completed, in a storm', None,
     PUSHES + in_work(C, 2.5 * S, '1:1', 9) + FIRST + SECOND, {}),
    ('a job again that is completed, in calm', 'Q2',
     PUSHES + in_work(C, 2.5 * S, '1:1', 9) + FIRST + SECOND, dict(events=CALM)),
    ('one id has two numbers', 'Q2 Q4',
     PUSHES + [push(B, 2.1 * S, '1:2')] + FIRST + SECOND, {}),
    ('one push has two numbers', 'Q2', CALLS + in_work(B, 51 * S, '1:3', 30), dict(
        before=[head(1, 3), waiting(2, 2), waiting(1, 3)], after=[head(3, 3)],
        depths=['q0\tr0\t2'], worked=DONE + worked((1, 3)))),
    ('a dead job', None, PUSHES + FIRST, dict(after=AFTER + [dead(2, 2)])),
    ('a dead job that is pushed anew', None,
     CALLS[:-5] + [call('redrive', A, 50 * S, '2:2')] + in_work(B, 51 * S, '2:3', 30), dict(
         after=[head(3, 3)], worked=worked((1, 1), (2, 3)))),
    ('a dead job that is pushed anew, and lost', 'Q1',
     CALLS[:-5] + [call('redrive', A, 50 * S, '2:2')], dict(worked=worked((1, 1)))),

    # Q3
    ('a session believes in its claim after a higher one', 'Q3',
     PUSHES + [claim(C, 2.5 * S, '1:1', 9)] + FIRST +
     [call('require', C, 4 * S, '1:1', 9)] + SECOND, {}),
    ('the same, and the higher one is not certain', None,
     PUSHES + [claim(C, 2.5 * S, '1:1', 9), claim(B, 3 * S, '1:1', 10, took=2 * S),
               call('require', C, 4 * S, '1:1', 9)] + finish(B, 6 * S, '1:1', 10) + SECOND, {}),
    ('a completion under an old token', 'Q3',
     PUSHES + [claim(C, 2.5 * S, '1:1', 9)] + FIRST[:1] + finish(C, 2.6 * S, '1:1', 9) + SECOND,
     {}),
    ('two claims under one token', 'Q3',
     PUSHES + [claim(C, 2.5 * S, '1:1', 10)] + FIRST + SECOND, {}),

    # Q4
    ('numbers that fall', 'Q4', PUSHES + FIRST + SECOND + in_work(B, 51 * S, '1:1', 30), {}),
    ('a later push has the lower number', 'Q4',
     [push(A, 1 * S, '1:2'), push(A, 2 * S, '2:1')] + in_work(B, 3 * S, '2:1', 10) +
     in_work(C, 50 * S, '1:2', 20), dict(before=[head(1, 2), waiting(1, 2)],
                                         worked=worked((2, 1), (1, 2)))),
    ('the same at the same time', None,
     [push(A, 1 * S, '1:2', took=2 * S), push(A, 2 * S, '2:1')] + in_work(B, 3 * S, '2:1', 10) +
     in_work(C, 50 * S, '1:2', 20), dict(before=[head(1, 2), waiting(1, 2)],
                                         worked=worked((2, 1), (1, 2)))),
    ('a second push of one id begins later, and fails first', None,
     PUSHES[1:] + [push(C, 2.5 * S, '1:0', state='28000')] + FIRST +
     [push(A, 1 * S, '1:1', took=10 * S)] + SECOND, {}),
    ('a number twice', 'Q4', CALLS + [push(A, 4 * S, '3:2')], dict(more=worked((3, 2)))),
    ('an array with a gap', 'Q4', [push(A, 1 * S, '1:1,3:3'), push(A, 2 * S, '2:2')] + FIRST +
     SECOND + in_work(B, 51 * S, '3:3', 30), dict(
         before=[head(1, 3), waiting(2, 2), waiting(3, 3)], after=[head(3, 3)],
         depths=['q0\tr0\t2'], worked=DONE + worked((3, 3)))),
    ('jobs that were dropped', None, PUSHES + [call('drop', A, 3 * S)],
     dict(before=AFTER, depths=[], worked=worked((7, 7)))),
    ('a job that was dropped comes', 'Q4', PUSHES + FIRST + [call('drop', A, 4 * S)] + SECOND, {}),
    ('a drop while a job is in the outbox', None,
     PUSHES + FIRST + in_work(C, 3.5 * S, '2:2', 20) +
     outbox(3, 4 * S, call('commit', A, 5 * S)) + [call('drop', B, 6 * S)] +
     in_work(B, 51 * S, '3:3', 30), dict(
         before=[head(2, 3), waiting(3, 3)], after=[head(3, 3)],
         worked=DONE + worked((3, 3)))),
    ('a job that is pushed after a drop is lost', 'Q1',
     PUSHES + [call('drop', A, 3 * S), push(A, 4 * S, '3:3')],
     dict(before=[head(3, 3)], after=[head(3, 3)], depths=[], worked=worked((7, 7)))),

    # Q5
    ('a depth that is wrong', 'Q5', CALLS, dict(depths=['q0\tr0\t2'])),
    ('a depth that is not told', 'Q5', CALLS, dict(depths=[])),
    ('jobs that are left', 'Q5', PUSHES + FIRST, dict(
        after=BEFORE, worked=worked((1, 1), (2, 2)))),

    # I6, I8
    ('a failure in calm', 'I6', CALLS + [call('next', A, 5 * S, state='08006')],
     dict(events=CALM)),
    ('a failure in calm, with a slow server', None, CALLS + [call('next', A, 5 * S, state='08006')],
     dict(events=[CALM[0] + 'slow'])),
    ('a call without end in calm', 'I6', CALLS + [call('next', A, 5 * S, took=20 * S)],
     dict(events=CALM)),
    ('an outcome that is none', 'I8', CALLS + [call('next', A, 5 * S, state='XX000')], {}),
]


def main():
    bad = 0
    for name, promise, calls, other in CASES:
        status, promises = found(GOOD, other.get('events', []), WRITTEN, [
            ('queues', calls),
            ('jobs.before', map(json.dumps, other.get('before', BEFORE))),
            ('jobs.after', map(json.dumps, other.get('after', AFTER))),
            ('depths', other.get('depths', DEPTHS)),
            ('worked.0', other.get('worked', DONE)), ('worked.1', other.get('more', []))])
        wanted = set((promise or '').split())
        if promises != wanted or (status != 0) != bool(wanted):
            bad += 1
            print('%s: found %s, wanted %s' % (name, sorted(promises), sorted(wanted)))
    return 1 if bad else 0


sys.exit(main())
