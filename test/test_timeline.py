#!/usr/bin/python3
#
# test_timeline.py: test/timeline with small histories, written by hand, and the pictures
# in doc.  One test: test/test_timeline.py Timeline.test_NAME.

import glob
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
S = 1000000                             # a second
SVG = '{http://www.w3.org/2000/svg}'
LARGEST = 70000                         # bytes, of a picture in doc


def op(name, session, token, sent, lock='n0', state='00000', write=0, detail='', took=0.001,
       mode='exclusive'):
    """A line of history; the server's times lie just inside the client's."""
    sent, received = int(sent * S), int((sent + took) * S)
    known = state == '00000' and name not in ('commit', 'write', 'disconnect')
    return '\t'.join(map(str, (name, session, lock, token, sent, received,
                               sent + 1 if known else 0, received - 1 if known else 0, state,
                               write, mode, detail)))


def event(kind, cluster, began, ended, detail=''):
    return '%s\t%s\t%d\t%d\t%s' % (kind, cluster, began * S, ended * S, detail)


A, B, C = '0.0.1', '1.0.1', '0.1.1'
GOOD = [
    op('acquire', A, 100, 1), op('require', A, 100, 2),
    op('acquire', B, 200, 2.5, took=1.5), op('release', A, 100, 3, detail='t', took=0.9),
    op('require', B, 200, 6), op('release', B, 200, 7, detail='t'),
]
LOSS = [
    op('acquire', A, 100, 1), op('require', A, 100, 2),
    op('acquire', B, 200, 3, took=2), op('require', A, 0, 6, state='LK001'),
    op('release', B, 200, 7, detail='t'),
]
# Belief in the lower token after the higher one was granted.
OVERLAP = GOOD + [op('require', A, 100, 5)]


def draw(history, events=(), *options):
    """(status, what was said, the picture as text)"""
    with tempfile.TemporaryDirectory() as folder:
        for name, lines in (('history', history), ('events', events)):
            with open(os.path.join(folder, name), 'w') as f:
                f.writelines(line + '\n' for line in lines)
        run = subprocess.run([os.path.join(HERE, 'timeline'), *options, folder],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return run.returncode, run.stderr.decode(), run.stdout.decode()


def marks(svg, style):
    """What the picture says of each element of that class."""
    return [e.findtext(SVG + 'title') for e in ElementTree.fromstring(svg).iter()
            if e.get('class') == style]


def dark(svg):
    """(from, to) of the bars of those who are shown to hold the lock."""
    bars = [e for e in ElementTree.fromstring(svg).iter(SVG + 'rect') if e.get('class') == 'h']
    return sorted((float(e.get('x')), float(e.get('x')) + float(e.get('width'))) for e in bars)


class Timeline(unittest.TestCase):
    def check(self, history, events=(), *options):
        status, said, svg = draw(history, events, *options)
        self.assertEqual((status, said), (0, ''))
        return svg

    def test_good_history_has_no_overlap(self):
        svg = self.check(GOOD)
        bars = dark(svg)
        self.assertEqual(len(bars), 2)
        self.assertLessEqual(bars[0][1], bars[1][0])
        self.assertEqual(marks(svg, 'r'), [])

    def test_hold_is_from_grant_to_release(self):
        self.assertEqual(marks(self.check(GOOD), 'hold'), [
            'session 0 of cluster 0, token 100: 0.001 s to 2.000 s, released at 2.900 s',
            'session 0 of cluster 1, token 200: 3.000 s to 6.000 s, released at 6.001 s'])

    def test_bars_lie_at_their_times(self):
        second = (980 - 92 - 16) / 8                   # the picture, less its margins
        svg = self.check(GOOD, (), '--from=0', '--to=8')
        for bar, times in zip(dark(svg), ((0.001, 2), (3, 6))):
            for x, time in zip(bar, times):
                self.assertAlmostEqual(x, 92 + time * second, delta=0.2)

    def test_overlap_is_drawn_and_reported(self):
        status, said, svg = draw(OVERLAP)
        self.assertEqual(status, 1)
        self.assertIn('OVERLAP: tokens 100 (session 0.0.1) and 200 (session 1.0.1)', said)
        self.assertEqual(len(marks(svg, 'r')), 3)      # on both bars, and in the legend
        self.assertIn('two sessions hold the lock', svg)

    def test_holds_that_share_the_lock_may_overlap(self):
        history = [op('acquire', A, 100, 1, mode='shared'),
                   op('acquire', B, 200, 2, mode='shared'),
                   op('acquire', C, 100, 3, mode='shared'),
                   op('require', A, 100, 5, mode='shared'),
                   op('require', B, 200, 6, mode='shared'),
                   op('release', C, 100, 7, detail='t', mode='shared')]
        self.assertEqual(marks(self.check(history), 'hold'), [
            'session 0 of cluster 0, token 100, shared: 0.001 s to 4.000 s',
            'session 1 of cluster 0, token 100, shared: 2.001 s to 6.000 s, released at 6.001 s',
            'session 0 of cluster 1, token 200, shared: 1.001 s to 5.000 s'])

    def test_exclusive_hold_beside_permits_is_reported(self):
        history = [op('acquire', A, 100, 1, mode='semaphore 1/5'), op('acquire', B, 200, 2),
                   op('require', A, 100, 5, mode='semaphore 1/5'), op('require', B, 200, 6)]
        status, said, _ = draw(history)
        self.assertEqual(status, 1)
        self.assertIn('OVERLAP: tokens 100 (session 0.0.1) and 200 (session 1.0.1)', said)

    def test_overlap_outside_the_picture_is_reported(self):
        self.assertEqual(draw(OVERLAP, (), '--from=5.5', '--to=6')[0], 1)

    def test_operator_excuses_an_overlap(self):
        history = [line.replace('n0', 'o1') for line in OVERLAP]
        status, said, svg = draw(history, [event('operator', 2, 3.5, 3.6, 'o1')])
        self.assertEqual(status, 0)
        self.assertIn('overlap after an operator changed the item', said)
        self.assertEqual(len(marks(svg, 'r')), 3)

    def test_operator_is_marked_on_his_lock_only(self):
        events = [event('operator', 2, 3.5, 3.6, 'n0'), event('operator', 2, 4.5, 4.6, 'o1')]
        self.assertEqual(marks(self.check(GOOD, events), 'operator'),
                         ["operator changed the lock's item: 2.500 s"])

    def test_cut_is_marked(self):
        svg = self.check(LOSS, [event('cut', 0, 2.5, 5.5)])
        self.assertEqual(marks(svg, 'cut'),
                         ['cut off from DynamoDB, or worker stopped: 1.500 s to 4.500 s'])

    def test_loss_ends_belief_at_the_last_call_that_showed_it(self):
        svg = self.check(LOSS)
        self.assertEqual(marks(svg, 'hold')[0], 'session 0 of cluster 0, token 100: '
                         '0.001 s to 1.000 s, lost at 5.001 s')
        self.assertIn('learns that it lost the lock', svg)

    def test_crash_is_marked(self):
        svg = self.check(
            [op('acquire', A, 100, 1), op('require', '0.1.1', 0, 1.5, 'n1', 'LK001'),
             op('acquire', '0.1.1', 0, 2, 'n1', 'lost', took=1),
             op('disconnect', '0.1.1', 0, 3, state='lost', took=0),
             op('disconnect', A, 0, 3, state='lost', took=0),
             op('acquire', B, 200, 2, took=3), op('release', B, 200, 6, detail='t'),
             op('try', '0.0.2', 0, 4)], (), '--lock=n0')
        self.assertEqual(marks(svg, 'crash'),
                         ['crashed, until its sessions are back: 2.000 s to 3.000 s'])
        self.assertIn('session ended at 2.000 s', svg)

    def test_one_lost_session_is_no_crash(self):
        svg = self.check(
            [op('acquire', A, 100, 1), op('require', '0.1.1', 0, 1.5, 'n1', 'LK001'),
             op('require', A, 0, 2, state='lost', took=1),
             op('disconnect', A, 0, 3, state='lost', took=0),
             op('try', '0.1.1', 0, 4, 'n1'),
             op('acquire', B, 0, 2, 'n1', state='lost', took=3),
             op('disconnect', B, 0, 5, state='lost', took=0)], (), '--lock=n0')
        self.assertEqual(marks(svg, 'crash'), [])

    def test_phases_are_marked(self):
        phases = ('storm', 'probe', 'calm')
        svg = self.check(GOOD, [event(kind, '-', 2 + n, 3 + n) for n, kind in enumerate(phases)])
        for kind in phases:
            self.assertEqual(len(marks(svg, kind)), 1, kind)

    def test_wait_without_grant(self):
        svg = self.check(GOOD + [op('acquire', '2.7.1', 0, 3, state='55P03', took=3)])
        self.assertIn('>session 7 waits<', svg)
        self.assertEqual(len(marks(svg, 'hold')), 2)

    def test_stacked_lock_is_held_until_its_last_release(self):
        svg = self.check([op('acquire', A, 100, 1), op('try', A, 100, 2),
                          op('release', A, 100, 3, detail='t'),
                          op('release', A, 100, 4, detail='t')])
        self.assertEqual(marks(svg, 'hold'), [
            'session 0 of cluster 0, token 100: 0.001 s to 3.000 s, released at 3.001 s'])

    def test_transaction_scope_ends_with_its_transaction(self):
        history = [op('xact_acquire', A, 100, 1), op('commit', A, 100, 3, write=1),
                   op('acquire', B, 200, 5)]
        self.assertIn('0.001 s to 0.001 s, released at 2.001 s', self.check(history))
        self.assertIn('0.001 s to 2.000 s, released at 2.001 s',
                      self.check(history, [event('guard', '-', 0, 0, 'on')]))

    def test_procedure(self):
        svg = self.check([op('procedure', A, 100, 1, took=2), op('acquire', B, 200, 4)])
        self.assertIn('released at 2.000 s', marks(svg, 'hold')[0])

    def test_token_is_written_where_it_fits(self):
        self.assertIn('>session 0, token 200<', self.check(GOOD))
        crowded = GOOD + [op('acquire', B, 300, 7.1)]
        self.assertNotIn('>session 0, token 200<', self.check(crowded, (), '--to=60'))

    def test_lock_and_window(self):
        history = GOOD + [op('acquire', '2.0.1', 300, 3, 'n1')]
        self.assertEqual(len(marks(self.check(history, (), '--lock=n1'), 'hold')), 1)
        self.assertEqual(len(marks(self.check(history, (), '--from=3.5', '--to=5'), 'hold')), 1)
        self.assertEqual(draw(history, (), '--from=5', '--to=4')[0], 1)
        self.assertIn('has no lock "n2"', draw(history, (), '--lock=n2')[1])

    def test_by_lock_has_a_lane_for_each_at_once(self):
        history = [op('acquire', '%d.0.1' % n, n, 1 + n, mode='semaphore') for n in range(4)]
        history[2:2] = [op('release', '0.0.1', 0, 2.5, detail='t')]
        history += [op('release', '%d.0.1' % n, n, 6 + n, detail='t') for n in (1, 2, 3)]
        svg = self.check(history, (), '--by-lock')
        self.assertIn('Lock "n0": at most 3 at once.', svg)
        self.assertEqual(len({e.get('y') for e in ElementTree.fromstring(svg).iter(SVG + 'rect')
                              if e.get('class') == 'h'}), 3)
        self.assertIn('a session of cluster 3 holds it', svg)

    def test_by_lock_has_a_row_for_each_lock(self):
        history = [op('acquire', A, 100, 1, 'q/a'), op('acquire', B, 200, 2, 'q/b'),
                   op('release', A, 100, 3, 'q/a', detail='failed'), op('acquire', C, 300, 4, 'q/a'),
                   op('disconnect', C, 0, 5, '-'), op('acquire', '2.0.1', 400, 6, 'r')]
        svg = self.check(history, [event('crash', 1, 5, 6)], '--by-lock', '--lock=q/*')
        self.assertIn('Who held the locks "q/*" when', svg)
        self.assertEqual([m.split(': ')[0] for m in marks(svg, 'hold')],
                         ['session 0 of cluster 0', 'session 1 of cluster 0', 'session 0 of cluster 1'])
        self.assertIn(', failed', marks(svg, 'hold')[0])
        self.assertLess(svg.rindex('class="h"'), svg.rindex('<circle'))
        for text in ('its job fails', 'its session dies', 'cluster 1: crashed'):
            self.assertIn(text, svg)
        self.assertEqual(marks(svg, 'crash'), [
            'cluster 1: crashed, until its sessions are back, 4.000 s to 5.000 s'])
        self.assertIn('has no lock "x*"', draw(history, (), '--by-lock', '--lock=x*')[1])

    def test_by_lock_draws_an_overlap(self):
        other = [op('acquire', C, 300, 1, 'm0'), op('require', C, 300, 2, 'm0')]
        status, said, svg = draw(OVERLAP + other, (), '--by-lock', '--lock=*0')
        self.assertEqual(status, 1)
        self.assertIn('OVERLAP: tokens 100', said)
        self.assertEqual(len(marks(svg, 'r')), 3)
        self.assertIn('Lock "m0": at most 1 at once. Lock "n0": at most 2 at once.', svg)

    def test_names_are_escaped(self):
        svg = self.check(GOOD + [op('acquire', A, 300, 9, 'a<&"b')], (), '--lock=a<&"b')
        self.assertIn('"a<&"b"', ElementTree.fromstring(svg).findtext(SVG + 'title'))

    def test_times_count_from_the_first_call(self):
        late = [op('acquire', '2.7.1', 0, 0.5, state='55P03', took=9)]
        self.assertIn('token 100: 0.501 s to 2.500 s', marks(self.check(GOOD + late), 'hold')[0])

    def test_refusals(self):
        for history, options, message in (
                (GOOD + ['acquire\t0.0'], (), "no line of a history: 'acquire\\t0.0"),
                ([], (), 'the history is empty'),
                (GOOD, ('--lock=n1',), 'the history has no lock "n1"'),
                (GOOD, ('--from=5', '--to=4'), 'nothing lies between'),
                (GOOD, ('--output=/nowhere/n0.svg',), 'No such file')):
            status, said, svg = draw(history, (), *options)
            self.assertEqual((status, svg), (1, ''), message)
            self.assertIn(message, said)
            self.assertNotIn('Traceback', said)

    def test_output(self):
        with tempfile.NamedTemporaryFile() as f:
            self.assertEqual(self.check(GOOD, (), '--output=' + f.name), '')
            ElementTree.parse(f.name)

    def test_pictures_in_doc(self):
        pictures = glob.glob(os.path.join(HERE, '..', 'doc', '*.svg'))
        self.assertGreater(len(pictures), 1)
        for path in pictures:
            with open(path, encoding='utf-8') as f:
                svg = f.read()
            self.assertLess(len(svg.encode()), LARGEST, path)
            root = ElementTree.fromstring(svg)
            self.assertTrue(root.findtext(SVG + 'title') and root.findtext(SVG + 'desc'), path)
            for word in ('<script', 'href', '@import', 'url(h', 'class="r"'):
                self.assertNotIn(word, svg, path)
            if 'Who held' in root.findtext(SVG + 'title'):
                self.assertGreater(len(dark(svg)), 1, path)

    def test_demonstrations_in_doc(self):
        for name, said in (('permits', r'Lock "jobs": at most 5 at once\.'),
                           ('deployments', r'(Lock "queue/deploy/env-\d": at most 1 at once\. ?){10}')):
            with open(os.path.join(HERE, '..', 'doc', name + '.svg'), encoding='utf-8') as f:
                root = ElementTree.fromstring(f.read())
            self.assertRegex(root.findtext(SVG + 'desc'), said)


if __name__ == '__main__':
    unittest.main(argv=sys.argv)
