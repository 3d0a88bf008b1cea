"""stub"""
import rich_click as click
from icefield.cli.settings import LakeCommand
@click.command(cls=LakeCommand)
def demo() -> None:
    """Demo."""
