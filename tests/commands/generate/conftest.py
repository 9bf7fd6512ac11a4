from tests.generation.conftest import workshop as workshop
