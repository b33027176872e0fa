# SPDX-License-Identifier: Apache-2.0
"""Episodes: what one is, when it is valid, and how it lives on disk as a dataset, a seed file or a bag."""

from __future__ import annotations

from supple.episodes.bag import BagWriter, ContactPoint
from supple.episodes.bag_folder import mend_log
from supple.episodes.bag_reader import BagContents, read_bag
from supple.episodes.bag_types import interface_folder
from supple.episodes.card import DatasetCard
from supple.episodes.dataset import Dataset
from supple.episodes.dataset_writer import DatasetWriter
from supple.episodes.episode import Episode, InitialState, Mark, Outcome, Seed, SkillSegment
from supple.episodes.ledger import AttemptRecord, Ledger, Origin, worst_soundness
from supple.episodes.seed_store import load_seed, save_seed
from supple.episodes.validation import validate, validate_seed

__all__ = [
    "AttemptRecord",
    "BagContents",
    "BagWriter",
    "ContactPoint",
    "Dataset",
    "DatasetCard",
    "DatasetWriter",
    "Episode",
    "InitialState",
    "Ledger",
    "Mark",
    "Origin",
    "Outcome",
    "Seed",
    "SkillSegment",
    "interface_folder",
    "load_seed",
    "mend_log",
    "read_bag",
    "save_seed",
    "validate",
    "validate_seed",
    "worst_soundness",
]
