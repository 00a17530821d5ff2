#!/usr/bin/python3
#
# test_check.py: a test of the torture's checker with small histories, written by
# hand: each bad one must be found out for the right promise.

import os
import subprocess
import sys
import tempfile

CHECK = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'check')
S = 1000000                             # a second


def op(name, session, token, sent, lock='n0', state='00000', write=0, detail='', took=1000,
       mode='exclusive'):
    """A line of history; the server's times lie just inside the client's."""
    sent = int(sent)
    known = state == '00000' and name not in ('commit', 'write')
    return '\t'.join(map(str, (name, session, lock, token, sent, sent + took,
                               sent + 1 if known else 0,
                               sent + took - 1 if known else 0, state, write, mode, detail)))


def shared(name, session, token, sent, **more):
    return op(name, session, token, sent, mode='shared', **more)


def permits(count, limit):
    def permits_op(name, session, token, sent, **more):
        return op(name, session, token, sent, mode='semaphore %d/%d' % (count, limit), **more)
    return permits_op


def on_c0(name, session, token, sent, **more):
    return op(name, session, token, sent, lock='c0', **more)


A, B = '0.0.1', '1.0.1'
A2, B2, C = '0.1.1', '1.1.1', '2.0.1'
U = '0.3.1'                             # with ddblock.release_on_rollback
one_of_1, one_of_2, one_of_3 = permits(1, 1), permits(1, 2), permits(1, 3)
two_of_2, two_of_3, three_of_3 = permits(2, 2), permits(2, 3), permits(3, 3)
GOOD = [
    op('acquire', A, 100, 1 * S), op('require', A, 100, 2 * S),
    op('write', A, 100, 2 * S, write=1), op('commit', A, 100, 3 * S, write=1),
    op('release', A, 100, 4 * S, detail='t'), op('token', A, 0, 5 * S),
    op('acquire', B, 200, 5 * S), op('require', B, 200, 6 * S),
    op('release', B, 200, 7 * S, detail='t'),
]
WRITTEN = ['1\tn0\t100\t1']

# A writes under a token, and commits when B has a higher one.
LATE_COMMIT = [
    op('acquire', A, 300, 8 * S), op('write', A, 300, 8.5 * S, write=2),
    op('require', A, 300, 8.6 * S), op('acquire', B, 400, 9.5 * S),
    op('commit', A, 300, 10 * S, write=2),
]
LATE_WRITTEN = WRITTEN + ['2\tn0\t300\t2']
# Two clusters share the lock, and each writes.
TWO_SHARED_WRITES = [
    shared('acquire', A, 400, 8 * S), shared('acquire', C, 500, 8 * S),
    shared('write', C, 500, 9 * S, write=2), shared('commit', C, 500, 9.5 * S, write=2),
    shared('write', A, 400, 10 * S, write=3), shared('commit', A, 400, 10.5 * S, write=3),
]
# A works as a leader.
C0 = '0.2.1'
LED = [on_c0('lead', A, 400, 8 * S), on_c0('write', A, 400, 8.5 * S, write=2)]
C0_WRITTEN = WRITTEN + ['2\tc0\t400\t2']
NOBODY_LEADS = [on_c0('lead', (A, B)[s % 2], 0, (8 + s) * S) for s in range(4)]
STANDING = ['stands\t0\t0\t0\tc0 c1', 'stands\t1\t0\t0\tc0']
GUARD = ['guard\t-\t0\t0\ton']



def undoing(*names, session=U):
    """Calls in the order of time, on one hold; "depth 2" has what it tells."""
    history = []
    for number, call in enumerate(names):
        name, _, value = call.partition(' ')
        told = {'release': 't', 'depth': value}.get(name, '')
        history.append(op(name, session, 400, 8 * S + number * S // 10, detail=told,
                          state='57014' if value == 'cancelled' else '00000'))
    return history


SAVEPOINTS = undoing('acquire', 'begin', 'acquire', 'savepoint', 'acquire', 'xact_try', 'depth 4')

# name, promises, more history, events, written (None: WRITTEN)
CASES = [
    ('nothing wrong', None, [], [], None),
    ('belief after a later grant', 'I1 I8', [op('require', A, 100, 8 * S)], [], None),
    ('guarded commit after a later grant', 'I1', LATE_COMMIT, GUARD, LATE_WRITTEN),
    ('the same without a guard', None, LATE_COMMIT, [], LATE_WRITTEN),
    ('commit after the release', None, LATE_COMMIT[:3] +
     [op('release', A, 300, 9 * S, detail='t')] + LATE_COMMIT[3:], GUARD, LATE_WRITTEN),
    ('belief while an operator tampers', None,
     [op('acquire', A, 300, 8 * S, 'o1'), op('acquire', B, 301, 9 * S, 'o1'),
      op('require', A, 300, 10 * S, 'o1')], ['operator\t0\t%d\t%d\to1' % (8.5 * S, 8.6 * S)],
     None),
    ('belief long after an operator tampered', 'I1',
     [op('acquire', A, 300, 8 * S, 'o1'), op('acquire', B, 301, 9 * S, 'o1'),
      op('require', A, 300, 20 * S, 'o1')], ['operator\t0\t%d\t%d\to1' % (8.5 * S, 8.6 * S)],
     None),
    ('a lower token, as an operator deleted the item during the call', None,
     [op('acquire', A, 300, 8 * S, 'o1'), op('acquire', B, 299, 9 * S, 'o1', took=2 * S)],
     ['operator\t0\t%d\t%d\to1' % (9.5 * S, 9.6 * S)], None),
    ('a lower token, and an operator deleted the item afterwards', 'I2',
     [op('acquire', A, 300, 8 * S, 'o1'), op('acquire', B, 299, 9 * S, 'o1', took=2 * S)],
     ['operator\t0\t%d\t%d\to1' % (11.5 * S, 11.6 * S)], None),
    ('a token twice', 'I2', [op('acquire', A, 200, 8 * S)], [], None),
    ('a token that falls', 'I2', [op('acquire', A, 150, 8 * S)], [], None),
    ('belief in a cut', 'I3',
     [op('acquire', A, 300, 8 * S), op('require', A, 300, 11 * S)],
     ['cut\t0\t%d\t%d\t' % (9 * S, 14 * S)], None),
    ('belief early in a cut', None,
     [op('acquire', A, 300, 8 * S), op('require', A, 300, 10 * S)],
     ['cut\t0\t%d\t%d\t' % (9 * S, 14 * S)], None),
    ('a grant in a cut', 'I3', [op('acquire', A, 300, 11 * S)],
     ['cut\t0\t%d\t%d\t' % (9 * S, 14 * S)], None),
    ('a lock that passes on early in a cut', None, [op('acquire', A, 300, 10 * S)],
     ['cut\t0\t%d\t%d\t' % (9 * S, 14 * S)], None),
    ('a grant that waited for the end of a cut', None,
     [op('acquire', A, 300, 12 * S, took=4 * S)], ['cut\t0\t%d\t%d\t' % (9 * S, 14 * S)],
     None),
    ('an acknowledged write is lost', 'I4', [], [], []),
    ('a write twice', 'I4', [], [], WRITTEN + ['2\tn0\t100\t1']),
    ('a refused write is there', 'I4',
     [op('acquire', A, 300, 8 * S), op('write', A, 300, 9 * S, write=2),
      op('commit', A, 300, 10 * S, state='LK001', write=2)], [],
     WRITTEN + ['2\tn0\t300\t2']),
    ('a write under a lower token', 'I4',
     [op('acquire', A, 300, 8 * S), op('write', A, 300, 9 * S, write=2),
      op('commit', A, 300, 10 * S, write=2)], [], ['1\tn0\t300\t2', '2\tn0\t100\t1']),
    ('a lock that leaks', 'I5', [op('probe', B, 0, 8 * S, state='55P03')],
     ['probe\t-\t%d\t%d\t%d' % (7 * S, 20 * S, 10 * S)], None),
    ('a lock that is free too late', 'I5', [op('probe', B, 300, 8 * S, took=11 * S)],
     ['probe\t-\t%d\t%d\t%d' % (7 * S, 20 * S, 10 * S)], None),
    ('a failure in calm', 'I6', [op('acquire', B, 0, 8 * S, state='08006')],
     ['calm\t-\t%d\t%d\t' % (7 * S, 20 * S)], None),
    ('a time-out during a conflict in calm', None, [op(
        'acquire', B, 0, 8 * S, state='53400', detail='another Region writes to the same item')],
     ['calm\t-\t%d\t%d\t' % (7 * S, 20 * S)], None),
    ('throttling in calm', 'I6', [op('acquire', B, 0, 8 * S, state='53400', detail='throttled')],
     ['calm\t-\t%d\t%d\t' % (7 * S, 20 * S)], None),
    ('a lease lost in calm', 'I6', [op('acquire', B, 0, 8 * S, state='LK001')],
     ['calm\t-\t%d\t%d\t' % (7 * S, 20 * S)], None),
    ('a lease lost in calm, by a slow server', None, [op('acquire', B, 0, 8 * S, state='LK001')],
     ['calm\t-\t%d\t%d\tslow' % (7 * S, 20 * S)], None),
    ('no reply in calm, of a slow server', None, [op('acquire', B, 0, 8 * S, state='08006')],
     ['calm\t-\t%d\t%d\tslow' % (7 * S, 20 * S)], None),
    ('a lease lost in calm, another phase was slow', 'I6',
     [op('acquire', B, 0, 8 * S, state='LK001')],
     ['calm\t-\t%d\t%d\t' % (7 * S, 20 * S), 'calm\t-\t%d\t%d\tslow' % (30 * S, 40 * S)], None),
    ('a call without end in calm', 'I6', [op('acquire', B, 300, 8 * S, took=10 * S)],
     ['calm\t-\t%d\t%d\t' % (7 * S, 20 * S)], None),
    ('belief after a definite failure', 'I8',
     [op('acquire', B, 0, 8 * S, state='55P03'), op('token', B, 300, 9 * S)], [], None),
    ('belief after the release', 'I8', [op('token', B, 200, 8 * S)], [], None),
    ('a release of a lock that was let go', 'I8', [op('release', B, 200, 8 * S, detail='t')], [],
     None),

    # What a rollback undoes
] + [('a rollback: ' + what, promise, history, [], None) for what, promise, history in (
    ('it undoes', None, SAVEPOINTS + undoing('rollback_to', 'depth 2', 'rollback', 'depth 1')),
    ('of a savepoint that undoes nothing', 'I8', SAVEPOINTS + undoing('rollback_to', 'depth 3')),
    ('of a transaction that undoes nothing', 'I8', SAVEPOINTS + undoing('rollback', 'depth 3')),
    ('a savepoint goes over to its transaction', None, SAVEPOINTS + undoing(
        'keep_savepoint', 'depth 4', 'rollback', 'depth 1')),
    ('COMMIT undoes', 'I8', SAVEPOINTS + undoing('commit', 'depth 1')),
    ('COMMIT keeps', None, SAVEPOINTS + undoing('commit', 'depth 3')),
    ('COMMIT fails', None, SAVEPOINTS + undoing('commit cancelled', 'depth 1')),
    ('a release is undone once more', 'I8', SAVEPOINTS + undoing(
        'release', 'depth 3', 'rollback_to', 'depth 1')),
    ('a release takes the latest', None, SAVEPOINTS + undoing(
        'release', 'release', 'depth 2', 'rollback_to', 'depth 1', 'rollback', 'depth 1')),
    ('after the release of all', None, SAVEPOINTS + undoing(
        'release_all', 'depth 1', 'rollback', 'depth 0')),
    ('a call that was cancelled', 'I8', undoing('acquire cancelled', 'token')),
    ('belief in what was undone', 'I8', undoing('begin', 'acquire', 'rollback', 'token')),
    ('belief in what was kept', None, undoing('begin', 'acquire', 'commit', 'token')),
    ('another gets what was undone', None, undoing('begin', 'acquire', 'rollback', 'depth 0') +
     [op('acquire', B, 500, 9 * S), op('require', B, 500, 10 * S)]),
    ('of a session without the setting', None, undoing(
        'begin', 'acquire', 'rollback', 'depth 1', session=A)),
    ('of a session without the setting, which undoes', 'I8', undoing(
        'begin', 'acquire', 'rollback', 'depth 0', session=A)),
)] + [
    # Shared locks
    ('a lock is shared, also under tokens that fall', None,
     [shared('acquire', A, 400, 8 * S), shared('acquire', B, 500, 9 * S),
      shared('acquire', C, 450, 10 * S), shared('acquire', A2, 400, 11 * S)] +
     [shared('require', who, token, 12 * S)
      for who, token in ((A, 400), (B, 500), (C, 450), (A2, 400))], [], None),
    ('an exclusive lock after shared ones', None,
     [shared('acquire', A, 400, 8 * S), shared('require', A, 400, 9 * S),
      shared('release', A, 400, 9.5 * S, detail='t'), op('acquire', B, 500, 10 * S),
      op('require', B, 500, 11 * S)], [], None),
    ('an exclusive lock beside a shared one', 'I1',
     [shared('acquire', A, 400, 8 * S), op('acquire', B, 500, 9 * S),
      shared('require', A, 400, 10 * S)], [], None),
    ('a shared lock beside an exclusive one', 'I1',
     [op('acquire', A, 400, 8 * S), shared('acquire', B, 500, 9 * S),
      op('require', A, 400, 10 * S)], [], None),
    ('an exclusive lock beside permits', 'I1',
     [one_of_2('acquire', A, 400, 8 * S), op('acquire', B, 500, 9 * S),
      one_of_2('require', A, 400, 10 * S)], [], None),
    ('permits beside an exclusive lock', 'I1',
     [op('acquire', A, 400, 8 * S), one_of_2('acquire', B, 500, 9 * S),
      op('require', A, 400, 10 * S)], [], None),
    ('an exclusive lock beside a guarded commit under a shared one', 'I1',
     [shared('acquire', A, 400, 8 * S), shared('write', A, 400, 8.5 * S, write=2),
      op('acquire', B, 500, 9 * S), shared('commit', A, 400, 10 * S, write=2)], GUARD,
     LATE_WRITTEN),
    ('a session gets a shared lock that an exclusive one has ended', 'I2',
     [shared('acquire', A, 400, 8 * S), op('acquire', B, 500, 9 * S),
      shared('acquire', A2, 400, 10 * S)], [], None),
    ('a shared token below an exclusive one', 'I2',
     [op('acquire', A, 500, 8 * S), op('release', A, 500, 9 * S, detail='t'),
      shared('acquire', B, 400, 10 * S)], [], None),
    ('an exclusive token below a shared one', 'I2',
     [shared('acquire', A, 500, 8 * S), shared('release', A, 500, 9 * S, detail='t'),
      op('acquire', B, 400, 10 * S)], [], None),
    ('one shared token in two clusters', 'I2',
     [shared('acquire', A, 400, 8 * S), shared('acquire', B, 400, 9 * S)], [], None),
    ('one token, exclusive and shared', 'I2',
     [op('acquire', A, 400, 8 * S), op('release', A, 400, 9 * S, detail='t'),
      shared('acquire', A2, 400, 10 * S)], [], None),
    ('a shared lock while an operator tampers', None,
     [shared('acquire', A, 300, 8 * S, lock='o1'), op('acquire', B, 400, 9 * S, 'o1'),
      shared('require', A, 300, 10 * S, lock='o1')],
     ['operator\t0\t%d\t%d\to1' % (8.5 * S, 8.6 * S)], None),
    ('shared writes under tokens that fall', None, TWO_SHARED_WRITES, [],
     WRITTEN + ['2\tn0\t500\t2', '3\tn0\t400\t3']),
    ('a shared write under a token below an exclusive one', 'I4', TWO_SHARED_WRITES +
     [op('acquire', B, 600, 12 * S), op('write', B, 600, 13 * S, write=4),
      op('commit', B, 600, 14 * S, write=4)], [],
     WRITTEN + ['2\tn0\t500\t2', '3\tn0\t600\t4', '4\tn0\t400\t3']),
    ('an exclusive write under a token below a shared one', 'I4', TWO_SHARED_WRITES, [],
     ['1\tn0\t500\t2', '2\tn0\t100\t1', '3\tn0\t500\t3']),
    ('writes under permits, in any order', None,
     [one_of_2('acquire', A, 400, 8 * S), one_of_2('write', A, 400, 9 * S, write=2),
      one_of_2('commit', A, 400, 10 * S, write=2)], [], ['1\tn0\t400\t2', '2\tn0\t100\t1']),
    ('belief in a shared lock that was let go', 'I8',
     [shared('acquire', A, 400, 8 * S), shared('release', A, 400, 9 * S, detail='t'),
      shared('token', A, 400, 10 * S)], [], None),

    # Semaphores
    ('permits within their limit', None,
     [two_of_3('acquire', A, 400, 8 * S), one_of_3('acquire', B, 500, 9 * S),
      two_of_3('require', A, 400, 10 * S), two_of_3('release', A, 400, 11 * S, detail='t'),
      two_of_3('acquire', C, 600, 12 * S), one_of_3('require', B, 500, 13 * S),
      two_of_3('require', C, 600, 13 * S)], [], None),
    ('permits beyond their limit, in two clusters', 'I1',
     [two_of_3('acquire', A, 400, 8 * S), two_of_3('acquire', B, 500, 9 * S),
      two_of_3('require', A, 400, 10 * S)], [], None),
    ('permits beyond their limit, in one cluster', 'I1',
     [two_of_2('acquire', A, 400, 8 * S), one_of_2('acquire', A2, 400, 9 * S),
      two_of_2('require', A, 400, 10 * S)], [], None),
    ('permits beyond their limit, for three', 'I1',
     [one_of_2('acquire', A, 400, 8 * S), one_of_2('acquire', B, 500, 9 * S),
      one_of_2('acquire', C, 600, 10 * S), one_of_2('require', A, 400, 11 * S),
      one_of_2('require', B, 500, 11 * S)], [], None),
    ('a release shows that permits were held until then', 'I1',
     [two_of_2('acquire', A, 400, 8 * S), one_of_2('acquire', B, 500, 9 * S),
      two_of_2('release', A, 400, 10 * S, detail='t')], [], None),
    ('permits that went back while another waited', None,
     [two_of_2('acquire', A, 400, 8 * S), one_of_2('acquire', B, 500, 9 * S, took=3 * S),
      two_of_2('require', A, 400, 10 * S), two_of_2('release', A, 400, 11 * S, detail='t'),
      one_of_2('require', B, 500, 13 * S)], [], None),
    ('the limit of a caller who comes later is lower', 'I1',
     [three_of_3('acquire', A, 400, 8 * S), one_of_1('acquire', B, 500, 9 * S),
      three_of_3('require', A, 400, 10 * S)], [], None),
    ('the limit of a caller who comes later is higher', None,
     [one_of_1('acquire', A, 400, 8 * S), two_of_3('acquire', B, 500, 9 * S),
      one_of_1('require', A, 400, 10 * S)], [], None),
    ('a permit passes on under its own limit', None,
     [one_of_1('acquire', A, 400, 8 * S), two_of_3('acquire', B, 500, 9 * S),
      one_of_1('release', A, 400, 10 * S, detail='t'), one_of_1('acquire', A2, 400, 11 * S),
      one_of_1('require', A2, 400, 12 * S), two_of_3('require', B, 500, 12 * S)], [], None),
    ('permits that a session wanted no more', None,
     [one_of_1('acquire', A, 0, 8 * S, state='57014', took=2 * S),
      two_of_3('acquire', B, 500, 8.5 * S), one_of_1('acquire', A2, 400, 10 * S),
      one_of_1('require', A2, 400, 12 * S), two_of_3('require', B, 500, 12 * S)], [], None),
    ('permits that no session had wanted', 'I1',
     [two_of_3('acquire', B, 500, 8.5 * S), one_of_1('acquire', A2, 600, 10 * S),
      one_of_1('require', A2, 600, 12 * S), two_of_3('require', B, 500, 12 * S)], [], None),
    ('permits that a session had wanted long before', 'I1',
     [one_of_1('acquire', A, 0, 8 * S, state='57014', took=2 * S),
      two_of_3('acquire', B, 500, 28 * S), one_of_1('acquire', A2, 600, 30 * S),
      one_of_1('require', A2, 600, 32 * S), two_of_3('require', B, 500, 32 * S)], [], None),
    ('permits twice under one token, and others between', None,
     [one_of_3('acquire', A, 400, 8 * S), one_of_3('acquire', A2, 400, 8 * S),
      one_of_3('release', A, 400, 9 * S, detail='t'), two_of_3('acquire', B, 500, 10 * S),
      two_of_3('release', B, 500, 11 * S, detail='t'), one_of_3('acquire', A, 400, 12 * S),
      one_of_3('require', A2, 400, 13 * S), one_of_3('require', A, 400, 13 * S)], [], None),
    ('permits that may have been lost before the call returned', None,
     [one_of_2('acquire', A, 400, 8 * S, took=4 * S), two_of_2('acquire', B, 500, 11 * S),
      two_of_2('require', B, 500, 13 * S)], [], None),
    ('permits beyond their limit, as an operator tampers', None,
     [two_of_2('acquire', A, 400, 8 * S, lock='o1'),
      two_of_2('acquire', B, 500, 9 * S, lock='o1'),
      two_of_2('require', A, 400, 10 * S, lock='o1')],
     ['operator\t0\t%d\t%d\to1' % (8.5 * S, 8.6 * S)], None),
    ('permits beyond their limit, long after an operator tampered', 'I1',
     [two_of_2('acquire', A, 400, 18 * S, lock='o1'),
      two_of_2('acquire', B, 500, 19 * S, lock='o1'),
      two_of_2('require', A, 400, 20 * S, lock='o1')],
     ['operator\t0\t%d\t%d\to1' % (8.5 * S, 8.6 * S)], None),
    ('shared, then a semaphore', None,
     [shared('acquire', A, 400, 8 * S), shared('require', A, 400, 9 * S),
      one_of_2('acquire', B, 500, 10 * S), one_of_2('require', B, 500, 11 * S)], [], None),
    ('shared and a semaphore at once', 'I1',
     [shared('acquire', A, 400, 8 * S), one_of_2('acquire', B, 500, 9 * S),
      shared('require', A, 400, 10 * S)], [], None),
    ('a semaphore and shared at once', 'I1',
     [one_of_2('acquire', A, 400, 8 * S), shared('acquire', B, 500, 9 * S),
      one_of_2('require', A, 400, 10 * S)], [], None),
    ('belief in permits in a cut', 'I3',
     [one_of_2('acquire', A, 400, 8 * S), one_of_2('require', A, 400, 11 * S)],
     ['cut\t0\t%d\t%d\t' % (9 * S, 14 * S)], None),
    ('permits are granted in a cut', 'I3',
     [one_of_2('acquire', A, 400, 8 * S), one_of_2('acquire', A2, 400, 11 * S)],
     ['cut\t0\t%d\t%d\t' % (9 * S, 14 * S)], None),

    # A minimum
    ('a grant after a minimum', None,
     [op('acquire', A, 400, 8 * S, mode='exclusive 1500'), op('release', A, 400, 8.1 * S, detail='t'),
      op('acquire', B, 500, 8.2 * S, took=1300000)], [], None),
    ('a grant within a minimum', 'I9',
     [op('acquire', A, 400, 8 * S, mode='exclusive 1500'), op('release', A, 400, 8.1 * S, detail='t'),
      op('try', A2, 500, 9.4 * S)], [], None),
    ('a grant within a minimum, by which Dates are wrong', None,
     [op('acquire', A, 400, 8 * S, mode='exclusive 1500'), op('release', A, 400, 8.1 * S, detail='t'),
      op('try', A2, 500, 9.4 * S)], ['dates\t-\t0\t0\t100000'], None),
    ('a grant within the minimum of a cluster that stood still', None,
     [op('acquire', A, 400, 8 * S, mode='exclusive 1500'), op('release', A, 400, 8.1 * S, detail='t'),
      op('try', B, 500, 9.4 * S)], ['still\t0\t%d\t%d\t' % (5 * S, 7 * S)], None),
    ('a grant within a minimum, and another cluster stood still', 'I9',
     [op('acquire', A, 400, 8 * S, mode='exclusive 1500'), op('release', A, 400, 8.1 * S, detail='t'),
      op('try', B, 500, 9.4 * S)], ['still\t1\t%d\t%d\t' % (5 * S, 7 * S)], None),
    ('a shared grant within a minimum', 'I9',
     [op('xact_try', A, 400, 8 * S, mode='exclusive 1500'), op('commit', A, 400, 8.1 * S),
      shared('try', B, 500, 9.4 * S)], [], None),
    ('a minimum that a stacked call asks for', None,
     [op('acquire', A, 400, 8 * S), op('acquire', A, 400, 8.1 * S, mode='exclusive 1500'),
      op('release', A, 400, 8.2 * S, detail='t'), op('release', A, 400, 8.3 * S, detail='t'),
      op('acquire', B, 500, 8.5 * S)], [], None),

    # Joined and detached locks
    ('a lock that is joined', None,
     [op('acquire', A, 400, 8 * S), op('join', A2, 400, 9 * S), op('require', A2, 400, 10 * S),
      op('release', A, 400, 10.5 * S, detail='t'), op('require', A2, 400, 11 * S),
      op('release', A2, 400, 12 * S, detail='t'), op('acquire', B, 500, 13 * S)], [], None),
    ('a lock that is joined in another cluster', 'I2',
     [op('acquire', A, 400, 8 * S), op('join', B, 400, 9 * S)], [], None),
    ('a lock that passes on when one of two has let go', 'I1',
     [op('acquire', A, 400, 8 * S), op('join', A2, 400, 9 * S),
      op('release', A, 400, 10 * S, detail='t'), op('acquire', B, 500, 11 * S),
      op('require', A2, 400, 12 * S)], [], None),
    ('a lock that is joined under an old token', 'I2',
     [op('acquire', A, 400, 8 * S), op('release', A, 400, 9 * S, detail='t'),
      op('acquire', B, 500, 10 * S), op('join', A2, 400, 11 * S)], [], None),
    ('a join that comes too late', None, [op('join', B, 200, 8 * S, state='LK001')],
     ['calm\t-\t%d\t%d\t' % (7 * S, 20 * S)], None),
    ('belief in a lock that was detached', 'I8',
     [op('acquire', A, 400, 8 * S), op('detach', A, 400, 9 * S), op('token', A, 400, 10 * S)], [],
     None),
    ('a detached lock is granted', 'I1',
     [op('acquire', A, 400, 8 * S), op('detach', A, 400, 9 * S), op('acquire', B, 500, 10 * S)],
     ['calm\t-\t%d\t%d\t' % (7 * S, 20 * S)], None),
    ('a detached lock is granted after its loss', None,
     [op('acquire', A, 400, 8 * S), op('detach', A, 400, 9 * S), op('acquire', B, 500, 10 * S)],
     [], None),
    ('a detached lock is granted after its end', None,
     [op('acquire', A, 400, 8 * S), op('detach', A, 400, 9 * S),
      op('end', A2, 400, 9.5 * S, detail='t'), op('acquire', B, 500, 10 * S)],
     ['calm\t-\t%d\t%d\t' % (7 * S, 20 * S)], None),
    ('a detached lock is granted after its time', None,
     [op('acquire', A, 400, 8 * S), op('detach', A, 400, 9 * S), op('acquire', B, 500, 12 * S)],
     ['calm\t-\t%d\t%d\t' % (7 * S, 20 * S)], None),

    # Leaders
    ('one leads, then another', None,
     LED + [on_c0('commit', A, 400, 9 * S, write=2), on_c0('lead', B, 500, 10 * S),
            on_c0('commit', B, 0, 11 * S), on_c0('lead', A, 0, 12 * S)], GUARD, C0_WRITTEN),
    ('a leader commits when another one leads', 'I9',
     LED + [on_c0('lead', B, 500, 9 * S), on_c0('commit', A, 400, 10 * S, write=2)], GUARD,
     C0_WRITTEN),
    ('the same without a guard', None,
     LED + [on_c0('lead', B, 500, 9 * S), on_c0('commit', A, 400, 10 * S, write=2)], [],
     C0_WRITTEN),
    ('a leader still leads when another one does', 'I9',
     [on_c0('lead', A, 400, 8 * S), on_c0('lead_require', B, 500, 9 * S),
      on_c0('require', A, 400, 10 * S)], [], None),
    ('a leadership with a lower token', 'I9',
     [on_c0('lead', A, 500, 8 * S), on_c0('commit', A, 0, 8.5 * S), on_c0('lead', B, 400, 9 * S)],
     [], None),
    ('two transactions of a leader', None,
     [on_c0('lead', A, 400, 8 * S), on_c0('lead', A2, 400, 9 * S), on_c0('token', A, 400, 10 * S)],
     [], None),
    ('two clusters lead under one token', 'I9',
     [on_c0('lead', A, 400, 8 * S), on_c0('lead', B, 400, 9 * S)], [], None),
    ('a leadership outlives the savepoint', None,
     [on_c0('begin', A, 0, 8 * S), on_c0('savepoint', A, 0, 8 * S), on_c0('lead', A, 400, 8 * S),
      on_c0('rollback_to', A, 400, 9 * S), on_c0('token', A, 400, 10 * S)], [], None),
    ('a leadership outlives the transaction', 'I8',
     [on_c0('lead', A, 400, 8 * S), on_c0('commit', A, 0, 9 * S),
      on_c0('token', A, 400, 10 * S)], [], None),
    ('a leadership in a cut', 'I3',
     [on_c0('lead', A, 400, 8 * S), on_c0('lead', A2, 400, 11.5 * S)],
     ['cut\t0\t%d\t%d\t' % (9 * S, 14 * S)], None),
    ('a leadership early in a cut', None,
     [on_c0('lead', A, 400, 8 * S), on_c0('lead', A2, 400, 11 * S)],
     ['cut\t0\t%d\t%d\t' % (9 * S, 14 * S)], None),
    ('a transaction joins what its cluster has resigned', 'I9',
     [on_c0('lead', A, 400, 8 * S), on_c0('resign', A2, 0, 9 * S, detail='t'),
      on_c0('lead', C0, 400, 10 * S)], [], None),
    ('a transaction joins what another cluster has not resigned', None,
     [on_c0('lead', A, 400, 8 * S), on_c0('resign', B, 0, 9 * S, detail='f'),
      on_c0('lead', C0, 400, 10 * S)], [], None),
    ('a transaction that had joined asks again', None,
     [on_c0('lead', A, 400, 8 * S), on_c0('resign', A2, 0, 9 * S, detail='t'),
      on_c0('lead', A, 400, 10 * S)], [], None),
    ('nobody leads', 'I9', NOBODY_LEADS, STANDING + ['calm\t-\t%d\t%d\t' % (7 * S, 20 * S)],
     None),
    ('nobody leads in a storm', None, NOBODY_LEADS, STANDING, None),
    ('nobody leads for a while', None, NOBODY_LEADS + [on_c0('lead', B, 400, 11.5 * S)],
     STANDING + ['calm\t-\t%d\t%d\t' % (7 * S, 15 * S)], None),
    ('a leader that resigns leads until nobody works', None,
     NOBODY_LEADS + [on_c0('resign', A, 0, 11.5 * S, detail='t')],
     STANDING + ['calm\t-\t%d\t%d\t' % (7 * S, 15 * S)], None),
    ('a third cluster may lead', None, NOBODY_LEADS,
     STANDING + ['stands\t2\t0\t0\tc0', 'calm\t-\t%d\t%d\t' % (7 * S, 20 * S)], None),
    ('a cluster does not lead, or does not want to', None,
     [on_c0('lead_require', A, 0, 8 * S, state='LK001'),
      on_c0('lead', A, 0, 8.5 * S, state='55000'),
      on_c0('resign', A, 0, 9 * S, state='55000')], ['calm\t-\t%d\t%d\t' % (7 * S, 20 * S)],
     None),
    ('a leadership is lost in calm', 'I6', LED + [on_c0('require', A, 0, 9 * S, state='LK001')],
     ['calm\t-\t%d\t%d\t' % (7 * S, 20 * S)], None),
    ('a leadership is given up in calm', None,
     LED + [on_c0('resign_now', A2, 0, 8.8 * S, detail='t'),
            on_c0('require', A, 0, 9 * S, state='LK001')],
     ['calm\t-\t%d\t%d\t' % (7 * S, 20 * S)], None),
    ('the next leader of the cluster wrote before', None,
     LED + [on_c0('resign_now', A2, 0, 8.8 * S, detail='t'),
            on_c0('require', A, 0, 9 * S, state='LK002')],
     ['calm\t-\t%d\t%d\t' % (7 * S, 20 * S)], None),
    ('a resignation that waits interrupts', 'I6',
     LED + [on_c0('resign', A2, 0, 8.8 * S, detail='t'),
            on_c0('require', A, 0, 9 * S, state='LK001')],
     ['calm\t-\t%d\t%d\t' % (7 * S, 20 * S)], None),

    ('an outcome that is none', 'I8', [op('acquire', B, 0, 8 * S, state='XX000')], [], None),
]


def found(history, events, written, more=()):
    """Exit status and promises; more: further files, (name, lines)."""
    with tempfile.TemporaryDirectory() as folder:
        for name, lines in (('history', history), ('events', events),
                            ('written.0', written), *more):
            with open(os.path.join(folder, name), 'w') as f:
                f.writelines(line + '\n' for line in lines)
        result = subprocess.run([CHECK, folder], stdout=subprocess.PIPE, text=True)
    return result.returncode, {line.split()[1].rstrip(':') for line in
                               result.stdout.splitlines() if line.startswith('VIOLATION')}


def main():
    bad = 0
    for name, promise, more, events, written in CASES:
        status, promises = found(GOOD + more, events, WRITTEN if written is None else written)
        wanted = set((promise or '').split())
        if promises != wanted or (status != 0) != bool(wanted):
            bad += 1
            print('%s: found %s, wanted %s' % (name, sorted(promises), sorted(wanted)))
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
