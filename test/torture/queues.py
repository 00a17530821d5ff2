# queues.py: the part of the checker that knows queues.
#
# It reads, in the torture's folder, queues (client.c) and what drain.py leaves.  Promises are
# named Q1 to Q5 as in doc/internals/queues.md.  Each job has a uid, which is in its payload.  How each promise
# is looked for:
#
#	Q1	Each job whose push was confirmed, or whose transaction with
#		ddb_queue_push_on_commit() was, ends as committed work, as a dead job, or
#		was dropped.  Every number that was finished was finished by a
#		completion, whose transaction committed with its work, by death, or by a drop.
#		All numbers that a head counts as waiting have their jobs.  No job comes
#		from a transaction that was rolled back.
#	Q2	With ddb_queue_mark_done(), no cluster has the work of a job twice.  A push that is
#		repeated, by ddblock or under its id, has one number.  In calm phases, and at the
#		end, nobody gets a job whose completion has committed there.
#	Q3	Who completed a job has the highest token of those who claimed it.  Nobody believes in
#		a claim at a moment at which a higher token had claimed the resource for
#		certain.
#	Q4	By their tokens, the claims of a resource have numbers that never fall.  Of two
#		pushes, the one that was confirmed before the other began has the lower number.
#		A number has one job.  What was dropped does not come.
#	Q5	Depths are the numbers of jobs that wait, and 0 when all are worked off.
#	I6	In calm phases nothing fails, and nothing takes longer than CALM_US; as for locks,
#		leases may be lost in slow ones.
#	I8	Only the outcomes in ALLOWED; a redrive may find that another one was first.

import collections
import glob
import json
import os

from check_leaders import SLOW
from cluster import refused_completions

ATTEMPTS_MOST = 3           # as in queue_plans.c
CALM_US = 15000000          # longer than for a lock: a claim is five requests, one after the other
GOOD = '00000'
ALLOWED = {
    GOOD, 'lost', 'LK001', 'LK002', '08006', '28000', '53400', '55000', '55P03', '57014', '57P01',
    '57P02', '57P03',
}
# A call that fails so, or a commit, has not happened.
REFUSED = {'LK001', 'LK002', '57014', '40001', '55000', '55P03', '25P02'}

Call = collections.namedtuple(
    'Call', 'line op session place token sent received before after state jobs detail')


def is_too_late(call):
    return call.op == 'redrive' and call.state == '42704'


def read_call(number, line):
    v = line.rstrip('\n').split('\t')
    jobs = [tuple(map(int, job.split(':'))) for job in v[10].split(',')] if v[10] != '-' else []
    return Call(number, v[0], v[1], (v[2], v[3]), int(v[4]), int(v[5]), int(v[6]), int(v[7]),
                int(v[8]), v[9], jobs, v[11])


def began(call):
    return call.before or call.sent


def certain(call):
    return call.after or call.received


class Job:
    """A uid: what its pushes, and its claims, tell."""

    def __init__(self, place):
        self.place = place
        self.pushes = []
        self.confirmed = None       # the first push that was
        self.refused = True         # its transaction certainly did not commit
        self.numbers = set()


class Claim:
    def __init__(self, call):
        self.call = call
        (self.uid, self.number), = call.jobs
        self.beliefs = [call]       # calls that show that the session had it
        self.completion = None      # the call that may have finished it
        self.is_confirmed = False


class Session:
    def __init__(self):
        self.claim = None
        self.completing = None      # a call, before its COMMIT
        self.outbox = []            # uids, before COMMIT


class Queues:
    def __init__(self, folder, spans, guard, violations):
        self.folder = folder
        self.spans = spans
        self.guard = guard
        self.violations = violations
        self.jobs = {}                                      # uid: Job
        self.claims = collections.defaultdict(list)         # place: Claim
        self.drops = collections.defaultdict(list)          # place: Call
        self.redriven = set()                               # (place, number), perhaps
        self.dead_seen = set()
        self.sessions = collections.defaultdict(Session)
        self.calls = collections.Counter()
        self.failed = collections.Counter()
        self.uid_of = {}                                    # (place, number): uid
        self.heads = {}                                     # place: (done, seq), in the end
        self.waiting = {}                                   # (place, number): uid, before the drain
        self.dead = {}                                      # the same, in the end
        self.worked = []                                    # rows of the tables "worked"

    def violation(self, promise, text, *calls):
        """The calls are shown with those of the same place around them."""
        self.violations.append((promise, text + ''.join(
            '\n    queues %d: %s %s %s token %d, %d to %d (%d, %d), %s %s %s' % (
                c.line, c.op, c.session, '/'.join(c.place), c.token, c.sent, c.received, c.before,
                c.after, c.state, c.jobs, c.detail) for c in calls), ()))

    # ---- reading ----

    def lines(self, name):
        with open(os.path.join(self.folder, name)) as f:
            yield from f

    def read(self):
        calls = [read_call(number, line) for number, line in enumerate(self.lines('queues'), 1)]
        for call in calls:          # a job may come before its push has its answer
            if call.op in ('push', 'outbox'):
                for uid, _ in call.jobs:
                    self.job(uid, call)
        for call in calls:
            self.take(call)

    def take(self, call):
        good = call.state == GOOD
        self.calls[call.op] += 1
        if not good:
            self.failed[call.state] += 1
            if call.state not in ALLOWED and not is_too_late(call):
                self.violation('I8', 'unexpected outcome %s' % call.state, call)
        self.judge_calm(call)
        session = self.sessions[call.session]
        getattr(self, 'take_' + call.op, self.take_other)(call, good, session)

    def take_other(self, call, good, session):
        pass

    def job(self, uid, call):
        job = self.jobs.setdefault(uid, Job(call.place))
        if job.place != call.place:
            self.violation('Q1', 'job %d belongs to %s' % (uid, '/'.join(job.place)), call)
        return job

    def note_number(self, uid, number, call):
        """Everything that shows a job with its number."""
        if uid not in self.jobs:
            self.violation('Q1', 'nobody has pushed job %d' % uid, call)
            return
        self.job(uid, call).numbers.add(number)
        other = self.uid_of.setdefault((call.place, number), uid)
        if other != uid:
            self.violation('Q4', 'jobs %d and %d have number %d' % (other, uid, number), call)

    def take_push(self, call, good, _session):
        for uid, number in call.jobs:
            job = self.job(uid, call)
            job.pushes.append(call)
            job.refused = False
            if not good:
                continue
            job.confirmed = job.confirmed or call
            self.note_number(uid, number, call)
        numbers = [number for _, number in call.jobs]
        if good and numbers != list(range(numbers[0], numbers[0] + len(numbers))):
            self.violation('Q4', 'jobs of one push have other jobs between them', call)

    def take_begin(self, _call, _good, session):
        session.completing = None
        session.outbox = []

    def take_outbox(self, call, good, session):
        for uid, _ in call.jobs:
            self.job(uid, call).pushes.append(call)
            if good:
                session.outbox.append(uid)

    def take_next(self, call, good, session):
        session.claim = None
        if good and call.jobs:
            session.claim = Claim(call)
            self.claims[call.place].append(session.claim)
            self.note_number(session.claim.uid, session.claim.number, call)

    def take_require(self, call, good, session):
        if good and session.claim and call.token == session.claim.call.token:
            session.claim.beliefs.append(call)

    take_fail = take_require

    def take_complete(self, call, good, session):
        self.take_require(call, good, session)
        if call.detail.startswith('in transaction'):
            session.completing = call if good else None
        elif call.state not in REFUSED:
            session.claim.completion = call
            session.claim.is_confirmed = good

    def take_commit(self, call, good, session):
        for uid in session.outbox:
            job = self.jobs[uid]
            job.refused = call.state in REFUSED
            if good:
                job.confirmed = call
        if session.completing and call.state not in REFUSED:
            session.claim.completion = call
            session.claim.is_confirmed = good
            if good and self.guard:
                session.claim.beliefs.append(call)
        session.completing = None
        session.outbox = []

    def take_dead(self, call, good, _session):
        if good and call.jobs:
            (uid, number), = call.jobs
            self.dead_seen.add((call.place, number))
            self.note_number(uid, number, call)

    def take_redrive(self, call, _good, _session):
        self.redriven.add((call.place, call.jobs[0][1]))

    def take_drop(self, call, _good, _session):
        self.drops[call.place].append(call)

    # ---- the tables in the end ----

    def read_items(self, name):
        """Heads, waiting jobs and dead ones, by place; jobs that are finished are only litter."""
        heads, jobs, dead = {}, {}, {}
        for line in self.lines(name):
            item = json.loads(line)
            pk, sk = item['pk']['S'].split('#', 2), item['sk']['S']
            if pk[0] == 'r' and sk == 'head':
                done, seq = (int(item.get(a, {'N': 0})['N']) for a in ('done', 'seq'))
                heads[pk[1], pk[2]] = done, seq
                jobs.update(self.riders(item, (pk[1], pk[2]), done, seq))
            elif pk[0] in ('r', 'dead'):
                place = (pk[1], pk[2] if pk[0] == 'r' else item['resource']['S'])
                number = int(sk[4:] if pk[0] == 'r' else item['number']['N'])
                uid = json.loads(item['payload']['S'])['uid']
                (jobs if pk[0] == 'r' else dead)[place, number] = uid
                self.judge_attempts(pk[0], item)
        for kind in (jobs, dead):
            for (place, number), uid in kind.items():
                self.note_number(uid, number, Call(0, name, '-', place, 0, 0, 0, 0, 0, '', [], ''))
        waiting = {key: uid for key, uid in jobs.items() if key[1] > heads[key[0]][0]}
        return heads, waiting, dead

    def riders(self, head, place, done, seq):
        """The jobs that ride on a head: they wait, or are the one that runs."""
        riders = {}
        for name in head:
            if name.startswith('job#'):
                riders[place, int(name[4:])] = json.loads(head[name]['M']['payload']['S'])['uid']
                if not done < int(name[4:]) <= seq:
                    self.violation('Q5', '%s rides on the head of %s, which has %d - %d' % (
                        name, '/'.join(place), seq, done))
        return riders

    def judge_attempts(self, kind, item):
        if kind == 'dead' and int(item['attempts']['N']) < ATTEMPTS_MOST:
            self.violation('Q1', 'dead after %s attempts: %s' % (
                item['attempts']['N'], item['sk']['S']))

    def read_worked(self):
        rows = []
        for name in sorted(os.listdir(self.folder)):
            if name.startswith('worked.'):
                for line in self.lines(name):
                    queue, resource, number, uid, once = line.rstrip('\n').split('\t')
                    rows.append((name, (queue, resource), int(number), int(uid), once == 't'))
        return rows

    # ---- judging ----

    def is_in(self, kinds, start, end):
        """The phase of these kinds in which all of this lies."""
        for kind in kinds:
            for span in self.spans[kind]:
                if span[1] <= start and end <= span[2]:
                    return span
        return None

    def judge_calm(self, call):
        calm = self.is_in(('calm', 'drain'), call.sent, call.received)
        if not calm or calm[3] == 'slow' and call.state in SLOW:
            return
        if call.state not in (GOOD, '57014') and not is_too_late(call):
            self.violation('I6', 'a failure without a fault', call)
        elif call.received - call.sent > CALM_US:
            self.violation('I6', 'a call of %.1f s without a fault' % (
                (call.received - call.sent) / 1e6), call)

    def judge(self):
        if not os.path.exists(os.path.join(self.folder, 'jobs.after')):
            print('# queues were not judged: the run ended before its tables were read')
            return
        for job in self.jobs.values():
            job.pushes.sort(key=began)
        heads, self.waiting, dead = self.read_items('jobs.before')
        self.judge_depths(heads)
        self.heads, left, self.dead = self.read_items('jobs.after')
        self.dead_seen.update(dead)
        self.dead_seen.update(self.dead)
        if left:
            self.violation('Q5', 'jobs are left: %s' % left)
        self.worked = self.read_worked()
        for place, claims in self.claims.items():
            claims.sort(key=lambda claim: claim.call.token)
            self.judge_claims(place, claims)
        self.judge_finished()
        self.judge_lost()
        self.judge_pushes()
        self.judge_once()

    def judge_depths(self, heads):
        told = {}
        for line in self.lines('depths'):
            queue, resource, depth = line.split()
            told[queue, resource] = int(depth)
        for place, (done, seq) in heads.items():
            jobs = [number for where, number in self.waiting if where == place]
            if told.get(place, 0) != seq - done:
                self.violation('Q5', 'the depth of %s is told as %d, the head says %d' % (
                    '/'.join(place), told.get(place, 0), seq - done))
            if sorted(jobs) != list(range(done + 1, seq + 1)):
                self.violation('Q1', '%s waits for numbers %d to %d, and the table has %s' % (
                    '/'.join(place), done + 1, seq, sorted(jobs)))

    def judge_claims(self, place, claims):
        """Of one resource, by their tokens."""
        higher = None               # the claim with a higher token that was certain first
        for claim in reversed(claims):
            for call in claim.beliefs if higher else ():
                if began(call) > certain(higher.call):
                    self.violation('Q3', 'job %d is in work under token %d and under %d' % (
                        claim.number, claim.call.token, higher.call.token), higher.call, call)
            if higher is None or certain(claim.call) < certain(higher.call):
                higher = claim
        for first, second in zip(claims, claims[1:]):
            if first.call.token == second.call.token:
                self.violation('Q3', 'two claims have one token', first.call, second.call)
            if first.number > second.number:
                self.violation('Q4', 'job %d comes after job %d' % (second.number, first.number),
                               first.call, second.call)
            calm = self.is_in(('calm', 'drain'), first.call.sent, second.call.received)
            if first.number == second.number and first.is_confirmed and calm and calm[3] != 'slow':
                self.violation('Q2', 'job %d comes again without a fault' % first.number,
                               first.call, first.completion, second.call)
        for drop in self.drops[place]:
            if drop.state == GOOD:
                self.judge_dropped(drop, claims)

    def judge_dropped(self, drop, claims):
        """What is in an outbox is not dropped, nor a dead job."""
        for claim in claims:
            job = self.jobs.get(claim.uid)
            if (job and began(claim.call) > certain(drop) and job.confirmed and
                    job.confirmed.op == 'push' and min(job.numbers) == claim.number and
                    certain(job.confirmed) < began(drop)):
                self.violation('Q4', 'job %d was dropped, and comes' % claim.number, drop, claim.call)

    def may_be_dropped(self, uid):
        job = self.jobs[uid]
        return any(began(push) < drop.received for push in job.pushes[:1]
                   for drop in self.drops[job.place])

    def is_dead(self, place, number):
        return (place, number) in self.dead_seen or (place, number) in self.redriven

    def judge_finished(self):
        """Each number up to the head's "done" was finished in one of three ways."""
        done_with = {(place, number) for _, place, number, _, _ in self.worked}
        for (place, number), uid in self.uid_of.items():
            if number > self.heads.get(place, (0, 0))[0]:
                continue
            claims = [claim for claim in self.claims[place] if claim.number == number]
            if self.is_dead(place, number) or self.may_be_dropped(uid):
                continue
            if not claims:
                self.violation('Q1', 'number %d of %s (job %d) is finished, and nobody had it' % (
                    number, '/'.join(place), uid))
            elif claims[-1].completion is None:
                self.violation('Q3', 'number %d of %s (job %d) is finished, but not by its last '
                               'claim' % (number, '/'.join(place), uid),
                               *[claim.call for claim in claims])
            elif (place, number) not in done_with:
                self.violation('Q1', 'number %d of %s (job %d) is finished without its work' % (
                    number, '/'.join(place), uid), claims[-1].call, claims[-1].completion)

    def judge_lost(self):
        worked = {uid for _, _, _, uid, _ in self.worked}
        dead = set(self.dead.values())
        for uid, job in self.jobs.items():
            if job.confirmed and uid not in worked and uid not in dead and not self.may_be_dropped(uid):
                self.violation('Q1', 'job %d is lost' % uid, *job.pushes[:1], job.confirmed)
            if job.refused and job.numbers:
                self.violation('Q1', 'job %d comes from a transaction that was rolled back' % uid,
                               *job.pushes)
            again = [number for number in job.numbers if not self.is_dead(job.place, number)]
            if len(again) > 1:
                self.violation('Q2', 'job %d has numbers %s' % (uid, sorted(again)), *job.pushes)

    def judge_pushes(self):
        """Q4: from the highest number down, which push was confirmed first."""
        places = collections.defaultdict(list)
        for job in self.jobs.values():
            if job.numbers and job.pushes:
                places[job.place].append((min(job.numbers), job))
        for numbered in places.values():
            first = None
            for number, job in sorted(numbered, key=lambda pair: pair[0], reverse=True):
                if first and certain(first.confirmed) < began(job.pushes[0]):
                    self.violation('Q4', 'a push that began later has the lower number %d' % number,
                                   first.confirmed, job.pushes[0])
                if (job.confirmed and job.confirmed.op == 'push' and
                        (first is None or certain(job.confirmed) < certain(first.confirmed))):
                    first = job

    def judge_once(self):
        times = collections.Counter((name, place, number)
                                    for name, place, number, _, once in self.worked if once)
        for (name, place, number), count in times.items():
            if count > 1:
                self.violation('Q2', '%s has the work of number %d of %s %d times' % (
                    name, number, '/'.join(place), count))

    # ---- telling ----

    def exercised(self):
        """What a long run must have had, and how often."""
        return {
            'jobs completed': sum(claim.is_confirmed for claims in self.claims.values()
                                  for claim in claims),
            'dead jobs': len(self.dead_seen),
            'redrives': len(self.redriven),
            'drops': sum(drop.state == GOOD for drops in self.drops.values() for drop in drops),
        } | ({'completions refused': self.completions_refused()} if any(
            'completion_late' in span[3].split() for span in self.spans['kinds']) else {})

    def completions_refused(self):
        return sum(map(refused_completions, glob.glob(os.path.join(self.folder, '*.log'))))

    def report(self):
        for op, count in sorted(self.calls.items()):
            print('# queue operation %-12s %d' % (op, count))
        for state, count in sorted(self.failed.items()):
            print('# queue SQLSTATE %-13s %d' % (state, count))
        claims = [claim for claims in self.claims.values() for claim in claims]
        numbers = {(claim.call.place, claim.number) for claim in claims}
        print('queues operations=%d jobs=%d confirmed=%d claims=%d jobs_claimed=%d completions=%d '
              'worked=%d dead=%d redriven=%d drops=%d depth=%d' % (
                  sum(self.calls.values()), len(self.jobs),
                  sum(job.confirmed is not None for job in self.jobs.values()), len(claims),
                  len(numbers), sum(claim.is_confirmed for claim in claims), len(self.worked),
                  len(self.dead_seen), len(self.redriven),
                  sum(len(drops) for drops in self.drops.values()), len(self.waiting)))
