def parallel_work(num_workers, fn, *args):
    """Map ``fn`` over ``args`` in threads; return the results in order, raise what a thread raised."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=num_workers) as pool:
        return list(pool.map(fn, *args))
