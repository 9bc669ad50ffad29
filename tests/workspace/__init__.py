"""Tests of tpu_migrate.workspace."""
