"""``python -m tpu_migrate`` is ``tpu-migrate``."""

from tpu_migrate.cli import main

main()
