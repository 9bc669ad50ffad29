"""Makes ``tests/`` importable for every test file: shared helpers are ``python.check``, ``report.samples`` ..."""

import pytest

pytest.register_assert_rewrite("python.check")
