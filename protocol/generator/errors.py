# SPDX-License-Identifier: Apache-2.0
"""What stops the generator."""


class ApiError(Exception):
    """One line: FILE:LINE: what is wrong."""
