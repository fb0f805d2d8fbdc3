"""`python -m harnessctl`: the same program as `harnessctl`."""

from harnessctl.cli.main import main

if __name__ == "__main__":
    main()
