"""Check: prove a gradient right, or say what is wrong with it. Framework-free; returns data, prints nothing."""

from pullback.check.check import check, check_subject
from pullback.check.finding import Finding, Report
from pullback.check.settings import Settings
from pullback.check.subject import Subject

__all__ = ["Finding", "Report", "Settings", "Subject", "check", "check_subject"]
