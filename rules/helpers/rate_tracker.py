import time


class RateTracker:
    """Count events per second, smoothed and over all."""

    def __init__(self, smooth_factor=None):
        self.smooth_factor = 0.4 if smooth_factor is None else smooth_factor
        self.start = self.last = time.time()
        self.total = self.pending = 0.0
        self.smoothed = None

    def add(self, count):
        self.pending += count
        self.total += count

    def rate(self):
        now = time.time()
        if now <= self.last:
            return 0.0
        current = self.pending / (now - self.last)
        if self.smoothed is None:
            self.smoothed = current
        else:
            self.smoothed = (1 - self.smooth_factor) * current + self.smooth_factor * self.smoothed
        self.last, self.pending = now, 0.0
        return self.smoothed

    def global_rate(self):
        seconds = time.time() - self.start
        return self.total / seconds if seconds > 0 else 0.0
