# SPDX-License-Identifier: Apache-2.0
"""Makes protocol/generated/ out of protocol/api/*.api; the language is described in README.md."""
