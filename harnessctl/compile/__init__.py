"""Compile: sources to bundle, as a list of passes."""

from harnessctl.compile.project import CompiledBundle, CompileResult, compile_project, validate_project

__all__ = ["CompileResult", "CompiledBundle", "compile_project", "validate_project"]
