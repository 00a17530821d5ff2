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


def op(name, session, token, sent, lock='n0', state='00000', write=0, detail='', took=1000):
    """A line of history; the server's times lie just inside the client's."""
    sent = int(sent)
    known = state == '00000' and name not in ('commit', 'write')
    return '\t'.join(map(str, (name, session, lock, token, sent, sent + took,
                               sent + 1 if known else 0,
                               sent + took - 1 if known else 0, state, write, detail)))


A, B = '0.0.1', '1.0.1'
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
GUARD = ['guard\t-\t0\t0\ton']

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
    ('a call without end in calm', 'I6', [op('acquire', B, 300, 8 * S, took=10 * S)],
     ['calm\t-\t%d\t%d\t' % (7 * S, 20 * S)], None),
    ('belief after a definite failure', 'I8',
     [op('acquire', B, 0, 8 * S, state='55P03'), op('token', B, 300, 9 * S)], [], None),
    ('belief after the release', 'I8', [op('token', B, 200, 8 * S)], [], None),
    ('an outcome that is none', 'I8', [op('acquire', B, 0, 8 * S, state='XX000')], [], None),
]


def found(history, events, written):
    with tempfile.TemporaryDirectory() as folder:
        for name, lines in (('history', history), ('events', events),
                            ('written.0', written)):
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


sys.exit(main())
