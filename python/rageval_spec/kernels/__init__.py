"""The typed interface of the Rust core. Only this package imports `_core`.

Every kernel checks its input and raises a `ValueError` that says what is wrong. Kernels release the interpreter lock
while they compute, and their results do not depend on the number of threads (`threads=None` uses one for each core).
A matrix is read in place if it is contiguous and of the kernel's type; otherwise it is converted. One-dimensional
values are copied.
"""

from typing import TYPE_CHECKING

from rageval_spec import _core
from rageval_spec._core import Unigram as Unigram
from rageval_spec.kernels.inputs import read_qrels as read_qrels
from rageval_spec.kernels.inputs import read_run as read_run
from rageval_spec.kernels.lexical_search import Bm25Builder as Bm25Builder
from rageval_spec.kernels.lexical_search import Bm25Index as Bm25Index
from rageval_spec.kernels.lexical_search import Bm25Method as Bm25Method
from rageval_spec.kernels.lexical_search import Bm25Splitter as Bm25Splitter
from rageval_spec.kernels.lexical_search import split_pieces as split_pieces
from rageval_spec.kernels.ranking_measures import Duplicates as Duplicates
from rageval_spec.kernels.ranking_measures import Evaluation as Evaluation
from rageval_spec.kernels.ranking_measures import Evaluator as Evaluator
from rageval_spec.kernels.ranking_measures import FusionMethod as FusionMethod
from rageval_spec.kernels.ranking_measures import MeasureWord as MeasureWord
from rageval_spec.kernels.ranking_measures import Missing as Missing
from rageval_spec.kernels.ranking_measures import Normalization as Normalization
from rageval_spec.kernels.ranking_measures import RankingMeasure as RankingMeasure
from rageval_spec.kernels.ranking_measures import RankingOptions as RankingOptions
from rageval_spec.kernels.ranking_measures import RankingValues as RankingValues
from rageval_spec.kernels.ranking_measures import TieRule as TieRule
from rageval_spec.kernels.ranking_measures import aggregate_measure as aggregate_measure
from rageval_spec.kernels.ranking_measures import evaluate_ranking as evaluate_ranking
from rageval_spec.kernels.ranking_measures import fuse_runs as fuse_runs
from rageval_spec.kernels.ranking_measures import measure_aliases as measure_aliases
from rageval_spec.kernels.ranking_measures import measure_names as measure_names
from rageval_spec.kernels.ranking_measures import measure_words as measure_words
from rageval_spec.kernels.ranking_measures import parse_measure as parse_measure
from rageval_spec.kernels.ranking_measures import prepare_evaluator as prepare_evaluator
from rageval_spec.kernels.ranking_measures import rank_documents as rank_documents
from rageval_spec.kernels.ranking_measures import ranking_values as ranking_values
from rageval_spec.kernels.sentences import SentenceSupport as SentenceSupport
from rageval_spec.kernels.sentences import WordShare as WordShare
from rageval_spec.kernels.sentences import names as names
from rageval_spec.kernels.sentences import sentence_support as sentence_support
from rageval_spec.kernels.sentences import split_sentences as split_sentences
from rageval_spec.kernels.sentences import word_support as word_support
from rageval_spec.kernels.statistics import IntervalEnds as IntervalEnds
from rageval_spec.kernels.statistics import IntervalMethod as IntervalMethod
from rageval_spec.kernels.statistics import PermutationTest as PermutationTest
from rageval_spec.kernels.statistics import TTest as TTest
from rageval_spec.kernels.statistics import bootstrap_mean as bootstrap_mean
from rageval_spec.kernels.statistics import bootstrap_means as bootstrap_means
from rageval_spec.kernels.statistics import bound_means as bound_means
from rageval_spec.kernels.statistics import holm as holm
from rageval_spec.kernels.statistics import permutation_test_paired as permutation_test_paired
from rageval_spec.kernels.statistics import permutation_test_unpaired as permutation_test_unpaired
from rageval_spec.kernels.statistics import student_p_value as student_p_value
from rageval_spec.kernels.statistics import student_quantile as student_quantile
from rageval_spec.kernels.statistics import t_test_paired as t_test_paired
from rageval_spec.kernels.vectors import UNRANKED as UNRANKED
from rageval_spec.kernels.vectors import NearestSearch as NearestSearch
from rageval_spec.kernels.vectors import Neighbours as Neighbours
from rageval_spec.kernels.vectors import SimilarityMetric as SimilarityMetric
from rageval_spec.kernels.vectors import Vectors as Vectors
from rageval_spec.kernels.vectors import cosine_matrix as cosine_matrix
from rageval_spec.kernels.vectors import cosine_rows as cosine_rows
from rageval_spec.kernels.vectors import top_k as top_k

if TYPE_CHECKING:
    from rageval_spec.kernels.inputs import Numbers as Numbers


def version() -> str:
    """Return the version of the core, which equals the version of the package."""
    return _core.__version__
