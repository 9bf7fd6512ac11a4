"""The toy of the tests of exchange."""

from tests.exchange.conftest import toy as toy
