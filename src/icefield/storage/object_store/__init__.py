"""Object stores: S3, GCS and Azure, and a local directory that behaves like one."""
