"""The checker: prove a gradient right, or say what is wrong with it. Framework-free; prints nothing."""

from pullback.checker.check import check
from pullback.checker.finding import Finding, Report
from pullback.checker.inquiry import check_subject
from pullback.checker.settings import Settings
from pullback.view.subject import Subject

__all__ = ["Finding", "Report", "Settings", "Subject", "check", "check_subject"]
