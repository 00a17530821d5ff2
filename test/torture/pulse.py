# pulse.py: notices when the machine, or DynamoDB's side, stands still for longer than a lease
# survives.  Then a lease may be lost though nothing was broken on purpose.

import threading
import time

from cluster import boottime

PERIOD = 0.1                # seconds
STALL_US = 700000           # a lease of 2 s is renewed after 0.7 s, and believed in for 1.8 s
AFTERMATH_US = 4000000      # what was lost shows later


class Pulse(threading.Thread):
    def __init__(self, network):
        super().__init__(daemon=True)
        self.network = network
        self.over = threading.Event()
        self.stalls = []                # when each of them was over
        self.longest_us = 0

    def run(self):
        before = boottime()
        while not self.over.wait(PERIOD):
            try:
                self.network.beat()
            except Exception:           # a stall, too, if it took long
                pass
            now = boottime()
            if now - before > STALL_US:
                self.stalls.append(now)
                self.longest_us = max(self.longest_us, now - before)
            before = now

    def end(self):
        self.over.set()
        self.join()

    def pace(self, began):
        """Of the time from then to now: what a phase's event tells the checker."""
        if any(ended > began - AFTERMATH_US for ended in self.stalls):
            return 'slow'
        return self.network.pace
