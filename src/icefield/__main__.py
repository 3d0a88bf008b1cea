"""The command line as `python -m icefield`."""

from icefield.cli.main import main

if __name__ == "__main__":
    main()
