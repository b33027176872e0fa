# SPDX-License-Identifier: Apache-2.0
"""A dataset opened by robomimic's own loader (``pip install -r requirements/robomimic.txt``)."""

from __future__ import annotations

from pathlib import Path

import episode_examples as examples
import numpy as np
import pytest

from supple.episodes import DatasetWriter

dataset = pytest.importorskip("robomimic.utils.dataset", reason="robomimic is not installed", exc_type=ImportError)
obs_utils = pytest.importorskip("robomimic.utils.obs_utils", exc_type=ImportError)

OBSERVATIONS = ("q", "v", "base_pose")


@pytest.mark.parametrize("cache", ["low_dim", None])
@pytest.mark.parametrize("share", [None, "train", "valid"])
def test_robomimic_reads_every_share_of_a_small_dataset(tmp_path: Path, share: str | None, cache: str | None) -> None:
    with DatasetWriter(tmp_path / "d", examples.card()) as writer:
        for i in range(4):
            writer.add(*examples.attempt(i))
        path = writer.finalise()
    obs_utils.initialize_obs_utils_with_obs_specs({"obs": {"low_dim": list(OBSERVATIONS)}})
    sequences = dataset.SequenceDataset(
        hdf5_path=str(path),
        obs_keys=OBSERVATIONS,
        dataset_keys=("actions", "rewards", "dones"),
        frame_stack=1,
        seq_length=4,
        load_next_obs=False,
        hdf5_cache_mode=cache,
        filter_by_attribute=share,
    )
    episodes = [e for _, e in map(examples.attempt, range(4)) if e is not None and e.outcome.success]
    expected = {None: episodes, "train": episodes[:-1], "valid": episodes[-1:]}[share]
    assert sequences.n_demos == len(expected)
    assert len(sequences) == sum(episode.length for episode in expected)
    np.testing.assert_allclose(sequences[0]["actions"], expected[0].actions[:4], rtol=1e-6)
    for key in OBSERVATIONS:
        np.testing.assert_array_equal(sequences[0]["obs"][key], expected[0].observations[key][:4])
