# timeline_history.py: what a history of the torture or of a demonstration, or servers' logs
# with ddblock.log_grants, say about who held a lock when, for test/timeline.

import bisect
import collections
import datetime
import json
import os
import re
import sys

CRASH_US = 200000
OPERATOR_US = 4000000               # as in test/torture/check
GRANTS = {'acquire', 'try', 'xact_acquire', 'xact_try', 'probe', 'procedure'}
SESSION_GRANTS = {'acquire', 'try', 'probe'}
SHOW_BELIEF = GRANTS | {'require', 'token', 'renew'}
GOOD = '00000'

Op = collections.namedtuple(
    'Op', 'op session lock token sent received before after state id mode detail')
Fault = collections.namedtuple('Fault', 'kind cluster began ended detail')


class Span:
    """What a session has to do with the lock: it waits, perhaps holds, then does not."""

    def __init__(self, op, granted):
        self.session = op.session
        self.cluster, self.number = op.session.split('.')[:2]
        self.mode = op.mode
        self.asked = op.sent
        self.granted = granted      # the end of waiting, if there is no token
        self.token = 0
        self.shown = granted        # the end of the dark part
        self.ended = granted        # of the medium part
        self.end = ''               # released, failed (its job), lost, or session ended
        self.scopes = collections.Counter()
        self.overlaps = []
        self.room = 0               # in the picture

    def show(self, moment):
        self.shown = max(self.shown, moment)
        self.ended = max(self.ended, moment)

    def close(self, moment, end):
        self.ended = max(self.ended, moment)
        self.end = end
        self.scopes.clear()


def read_folder(folder):
    """(operations, faults)"""
    with open(os.path.join(folder, 'history')) as f:
        ops = [History.read(line) for line in f]
    with open(os.path.join(folder, 'events')) as f:
        faults = [History.read_fault(line) for line in f]
    if not ops:
        sys.exit('timeline: the history is empty')
    return ops, faults


class Logs:
    """The operations that servers' logs tell of, in order of time."""

    EVENT = re.compile(r'lock (granted|lost|released): (\{"at": .*\})$')

    def __init__(self, files):
        self.ops = []
        self.clusters = []                              # their names, by number
        self.lives = {}                                 # cluster's number: owner
        self.held = {}                                  # owner, lock, token, pid: sessions
        self.count = 0
        events = []
        for name in files:
            with open(name, encoding='utf-8', errors='replace') as f:
                events += filter(None, map(self.read, f))
        if not events:
            sys.exit('timeline: no log has a line of ddblock.log_grants')
        for at, event, told in sorted(events, key=lambda e: e[0]):
            self.take(at, event, told)
        for (owner, lock, token, _), sessions in self.held.items():
            for session, mode in sessions if owner in self.lives.values() else ():
                self.add('require', session, lock, token, at, mode)

    @classmethod
    def read(cls, line):
        found = cls.EVENT.search(line)
        if found:
            told = json.loads(found[2])
            return cls.moment(told['at']), found[1], told

    @staticmethod
    def moment(text):
        return round(datetime.datetime.fromisoformat(text).timestamp() * 1e6)

    def add(self, op, session, lock, token, at, mode, state=GOOD):
        self.ops.append(Op(op, session, lock, token, at, at, at, at, state, 0, mode, 't'))

    def take(self, at, event, told):
        owner, lock, token = told['owner'], told['lock'], told['token']
        name = owner.rpartition('/')[0]
        if name not in self.clusters:
            self.clusters.append(name)
        cluster = self.clusters.index(name)
        if self.lives.setdefault(cluster, owner) != owner:
            self.restarted(self.lives[cluster], at)
            self.lives[cluster] = owner
        sessions = self.held.setdefault((owner, lock, token, told['pid']), [])
        if event == 'granted':
            self.count += 1
            mode = 'joined' if told['joined'] else told['mode']
            sessions.append(('%d.%d.%d' % (cluster, told['pid'], self.count), mode))
            self.add('acquire', sessions[-1][0], lock, token, at, mode)
        elif sessions:                                  # else it was granted before the log began
            session, mode = sessions.pop()
            if event == 'released':
                self.add('release', session, lock, token, at, mode)
            else:
                until = self.moment(told.get('until', told['at']))
                self.add('require', session, lock, token, until, mode)
                self.add('require', session, lock, 0, at, mode, 'LK001')

    def restarted(self, owner, at):
        """A server that crashed has logged no end."""
        for (of, lock, token, _), sessions in self.held.items():
            while of == owner and sessions:
                session, mode = sessions.pop()
                self.add('disconnect', session, lock, token, at, mode)


class History:
    """The spans of one lock, and the crashes."""

    def __init__(self, ops, faults, lock, names=None):
        self.names = names                              # of clusters; None: numbers
        self.faults = list(faults)
        self.first = min(op.sent for op in ops)         # the history is in order of replies
        self.last = max(op.received for op in ops)
        self.clusters = sorted({op.session.split('.')[0] for op in ops}, key=int)
        self.lock = lock or self.busiest(ops)
        if not any(op.lock == self.lock for op in ops):
            sys.exit('timeline: the history has no lock "%s"' % self.lock)
        self.guard = any(f.kind == 'guard' and f.detail == 'on' for f in self.faults)
        self.spans = []
        self.by_token = {}                              # token, session: Span
        self.open = {}                                  # session: Span
        for op in ops:
            self.take(op)
        self.faults += self.crashes(ops)
        self.overlaps = self.find_overlaps()

    def origin(self):
        """What times are counted from."""
        if not self.names:
            return 'the run began'
        return datetime.datetime.fromtimestamp(
            self.first / 1e6, datetime.timezone.utc).strftime('%Y-%m-%d %H:%M:%S UTC')

    @staticmethod
    def read(line):
        v = line.rstrip('\n').split('\t')
        if len(v) != len(Op._fields):
            sys.exit('timeline: this is no line of a history: %r' % line)
        return Op(*v[:3], *map(int, v[3:8]), v[8], int(v[9]), *v[10:])

    @staticmethod
    def read_fault(line):
        v = line.rstrip('\n').split('\t')
        if len(v) != len(Fault._fields):
            sys.exit('timeline: this is no line of events: %r' % line)
        return Fault(*v[:2], int(v[2]), int(v[3]), v[4])

    @staticmethod
    def busiest(ops):
        count = collections.Counter(op.lock for op in ops if op.op in GRANTS and op.token)
        return count.most_common(1)[0][0] if count else ops[0].lock

    # ---- spans ----

    def take(self, op):
        good = op.state == GOOD
        span = self.open.get(op.session)
        mine = op.lock == self.lock
        if mine and good and op.token and op.op in GRANTS:
            self.take_grant(op)
        elif mine and good and op.token and op.op in SHOW_BELIEF:
            if (op.token, op.session) in self.by_token:
                self.by_token[op.token, op.session].show(op.before or op.sent)
        elif span:
            self.take_end(op, span, good, mine)
        elif mine and op.op in GRANTS:
            self.spans.append(Span(op, op.received))
        if span and span.end:
            self.open.pop(op.session, None)

    def take_grant(self, op):
        granted = op.after or op.received
        span = self.by_token.get((op.token, op.session))
        if span is None or span.end:
            span = Span(op, granted)
            span.token = op.token
            self.spans.append(span)
            self.by_token[op.token, op.session] = span
        else:
            span.show(op.before or op.sent)
        if op.op == 'procedure':
            span.close(op.received, 'released')
            return
        span.scopes['session' if op.op in SESSION_GRANTS else 'xact'] += 1
        self.open[op.session] = span

    def take_end(self, op, span, good, mine):
        """What may end a hold; the checker's Session does the same."""
        if op.op == 'disconnect':
            span.close(op.sent, 'session ended')
        elif mine and (op.state == 'LK001' or
                       op.op == 'token' and good or op.op == 'release' and op.detail == 'f'):
            span.close(op.received, 'lost')
        elif mine and op.op == 'release':
            span.scopes['session'] -= 1
            if good:
                span.show(op.before or op.sent)
            if not +span.scopes:
                span.close(op.received, 'outcome unknown' if not good else
                           'failed' if op.detail == 'failed' else 'released')
        elif op.op in ('release_all', 'discard') and good:
            self.drop(span, op, 'session')
        elif op.op in ('commit', 'rollback'):
            if mine and good and op.op == 'commit' and op.id and self.guard:
                span.show(op.sent)
            self.drop(span, op, 'xact')
        elif mine and op.op == 'rollback_to':
            self.drop(span, op, 'xact')

    @staticmethod
    def drop(span, op, scope):
        if span.scopes.pop(scope, 0) and not +span.scopes:
            span.close(op.received, 'released')

    def find_overlaps(self):
        """(Span, Span, from, to) where both are shown to hold, and one of them exclusively."""
        found = []
        holds = sorted((s for s in self.spans if s.token), key=lambda s: s.granted)
        for number, a in enumerate(holds):
            for b in holds[number + 1:]:
                if b.granted >= a.shown:
                    break
                part = (b.granted, min(a.shown, b.shown))
                if (part[0] < part[1] and a.session != b.session and
                        'exclusive' in (a.mode, b.mode) and
                        not (a.token == b.token and 'joined' in (a.mode, b.mode))):
                    a.overlaps.append(part)
                    b.overlaps.append(part)
                    found.append((a, b) + part)
        return found

    def excused(self, overlap):
        return any(f.kind == 'operator' and f.detail == self.lock and
                   f.began <= overlap[3] and overlap[2] <= f.ended + OPERATOR_US
                   for f in self.faults)

    # ---- crashes ----

    def crashes(self, ops):
        """Where a cluster loses a call, and all sessions with it, until one is back."""
        found = []
        for cluster in self.clusters:
            mine = [op for op in ops if op.session.split('.')[0] == cluster]
            life = {}                                   # connection: [first, gone]
            for op in mine:
                life.setdefault(op.session, [op.sent, None])
                if op.op == 'disconnect':
                    life[op.session][1] = op.sent
            starts = sorted(first for first, _ in life.values())
            until = 0
            for op in mine:
                at = op.received
                if op.state != 'lost' or op.op == 'disconnect' or at < until:
                    continue
                there = [gone for first, gone in life.values()
                         if first < at - CRASH_US / 2 and (gone is None or gone > at - CRASH_US / 2)]
                if len(there) < 2 or any(g is None or g > at + CRASH_US / 2 for g in there):
                    continue
                back = bisect.bisect(starts, at + CRASH_US / 2)
                until = starts[back] if back < len(starts) else self.last
                found.append(Fault('crash', cluster, at, until, str(len(there))))
        return found
