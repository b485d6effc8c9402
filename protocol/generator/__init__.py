# SPDX-License-Identifier: Apache-2.0
"""Makes the generated folders out of protocol/api/*.api; the language is described in README.md."""
