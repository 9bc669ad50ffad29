class SampleGenerator:
    """Stands in for a loader: the same ``data``, ``sample_count`` times."""

    def __init__(self, data, sample_count):
        self.data, self.sample_count, self.left = data, sample_count, sample_count

    def __len__(self):
        return self.sample_count

    def __iter__(self):
        return SampleGenerator(self.data, self.sample_count)

    def __next__(self):
        if self.left <= 0:
            raise StopIteration
        self.left -= 1
        return self.data
