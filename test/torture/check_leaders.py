# check_leaders.py: what "check" looks for in leaderships' locks, "c0" and "c1": promise I9,
# "Leaders".
#
#	- Who joins a leadership is shown to believe in it, and so is a guarded COMMIT under
#	  it: of two leaderships, nobody is shown to believe in the older one when the newer
#	  one has begun for certain, and no two clusters have one token ("check" looks for
#	  both as for every lock).
#	- When a cluster has resigned, nobody joins what it led.
#	- In a calm phase, who works as a leader fails only if a "resign_now" has interrupted
#	  it; a "resign" waits.
#	- In a calm phase, somebody leads: it is not so that each cluster that stands for the
#	  lock is asked ASKED times or more in vain, and none with success, for GAP_US or
#	  longer.  A "resign" that waits for who works leads until it returns, though nobody
#	  else may join.  Shorter gaps are told, and those in storms.

import collections

LEADING = {'lead', 'lead_require'}
RESIGNING = {'resign', 'resign_now'}
LEADERSHIP_US = 2500000                       # the lease
GAP_US = 5000000
ASKED = 2
INTERRUPTED_US = 10000000                   # after a resignation
INTERRUPTED = {'LK001', 'LK002', '57P01', 'lost'}     # LK002: it waited for the next leader's row
SLOW = INTERRUPTED | {'08006'}                        # of a lost lease, or a late reply


def is_leadership(lock):
    return lock.startswith('c')


class Leaders:
    def __init__(self):
        self.shown = collections.defaultdict(list)      # lock: (moment, token, cluster)
        self.in_vain = collections.defaultdict(list)    # lock, cluster: moment
        self.led_until = collections.defaultdict(list)  # lock: when a resignation returned
        self.resigned = collections.defaultdict(list)   # lock, cluster: Op
        self.led = collections.defaultdict(dict)        # lock, cluster: token: its first Op
        self.counts = collections.Counter()
        self.wrong = []                                 # text, Op...

    def take(self, op, cluster, good, first, believes):
        """first: its session had not joined before; believes: it shows that."""
        if op.op in RESIGNING:
            self.counts['resignations'] += good and op.detail == 't'
            if good:
                self.resigned[op.lock, cluster].append(op)
                if op.detail == 't':
                    self.led_until[op.lock].append(op.after or op.received)
        if op.op in LEADING and good:
            self.counts['asked'] += 1
            if op.token == 0:
                self.in_vain[op.lock, cluster].append(op.before)
        if not believes:
            return
        self.counts['joined'] += first
        self.counts['commits'] += op.op == 'commit' and op.id > 0
        self.shown[op.lock].append((op.before or op.sent, op.token, cluster))
        if first:
            self.judge_join(op, cluster)
            self.led[op.lock, cluster].setdefault(op.token, op)

    def judge_join(self, op, cluster):
        """The resignation was after the token's first join, and before this one."""
        known = self.led[op.lock, cluster].get(op.token)
        for other in self.resigned[op.lock, cluster]:
            if known is not None and known.after < other.before and other.after < op.before:
                self.wrong.append(('"%s" is joined after its cluster has resigned' % op.lock,
                                   known, other, op))
                return

    def may_fail(self, op, cluster):
        """What fails in a calm phase."""
        if op.op == 'lead_require' and op.state == 'LK001':
            return True                                 # the cluster does not lead
        if op.op in LEADING | RESIGNING and op.state == '55000':
            return True                                 # it does not stand for it
        return is_leadership(op.lock) and op.state in INTERRUPTED and any(
            other.op == 'resign_now' and other.sent <= op.received and op.sent <= other.received + INTERRUPTED_US
            for other in self.resigned[op.lock, cluster])

    def terms(self, lock):
        """The leaderships in order: when each was shown first and last."""
        found = {}
        for moment, token, _ in self.shown[lock]:
            first, last = found.get(token, (moment, moment))
            found[token] = min(first, moment), max(last, moment)
        return [found[token] for token in sorted(found)]

    def gaps(self, lock):
        """From the last sign of one leadership to the first one of the next."""
        terms = self.terms(lock)
        return [(last, max(last, first)) for (_, last), (first, _) in zip(terms, terms[1:])]

    def judge(self, calms, standing):
        """Pairs of text and calls that are wrong.  standing: cluster: its leaderships"""
        wrong = [(found[0], found[1:]) for found in self.wrong]
        for lock in sorted(set().union(*standing.values())):
            shown = sorted([moment for moment, _, _ in self.shown[lock]] + self.led_until[lock])
            for began, ended in calms:
                edges = [began] + [m for m in shown if began < m < ended] + [ended]
                for last, following in zip(edges, edges[1:]):
                    vain = [sum(last < moment < following for moment in self.in_vain[lock, cluster])
                            for cluster, locks in standing.items() if lock in locks]
                    if following - last > GAP_US and min(vain) >= ASKED:
                        wrong.append(('nobody leads "%s" for %.1f s without a fault, asked %d '
                                      'times' % (lock, (following - last) / 1e6, sum(vain)), ()))
        return wrong

    def report(self, calms):
        for lock in sorted(self.shown):
            sorted_gaps = {True: [], False: []}
            for last, first in self.gaps(lock):
                calm = any(began <= last and first <= ended for began, ended in calms)
                sorted_gaps[calm].append((first - last) / 1e6)
            clusters = {cluster for _, _, cluster in self.shown[lock]}
            print('# leaders of "%s": %d clusters, %d leaderships; %s' % (
                lock, len(clusters), len(self.terms(lock)), '; '.join(
                    'no work between two %s %d times, %.1f s at the median, %.1f s at most' % (
                        'in calm phases' if calm else 'in storms', len(gaps),
                        sorted(gaps)[len(gaps) // 2], max(gaps))
                    for calm, gaps in sorted_gaps.items() if gaps)))
        print('# leaders: asked %(asked)d times, joined %(joined)d, commits %(commits)d, '
              'resignations %(resignations)d' % self.counts if self.counts else
              '# leaders: nobody asked')
