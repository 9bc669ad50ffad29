"""Does a migrated program compute what it computed? Small programs are migrated and run as two gloo ranks."""
