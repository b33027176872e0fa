# SPDX-License-Identifier: Apache-2.0
"""What a task is: a scene, where things start, which skills are taught, and when it has succeeded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import mujoco
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.errors import UnknownNameError
from supple.robots import Robot
from supple.sim.viewpoint import Viewpoint
from supple.sim.world import World

__all__ = ["Criterion", "Layout", "Skill", "Task"]


@dataclass(frozen=True)
class Skill:
    """A piece of one hand's work, taught relative to an object.

    Attributes:
        name: Name of the skill.
        effector: Hand that does it.
        reference: Object whose frame it is taught in.
        arm_noise: Standard deviation of the motion noise on arm targets, in [rad]; settings may say otherwise, as with
            the next two.
        interpolation_steps: Control steps over which it is entered from where the hands are.
        term_offset_range: Fewest and most control steps by which its end is moved at random, later if positive.
    """

    name: str
    effector: str
    reference: str
    arm_noise: float = 0.01
    interpolation_steps: int = 5
    term_offset_range: tuple[int, int] = (0, 0)

    @property
    def signal(self) -> str:
        """Name of the signals that say when it starts and ends."""
        return f"{self.name}_{self.effector}"


@dataclass(frozen=True)
class Layout:
    """Where everything is at the start of an episode.

    Attributes:
        T_world_base: Pose of the robot's base, feet on the floor.
        q: Joint positions in [rad], table order.
        objects: World pose of each object.
        materials: Material parameters that were drawn, in SI units.
        goal: Numbers that define the goal.
    """

    T_world_base: pin.SE3
    q: NDArray[np.float64]
    objects: Mapping[str, pin.SE3]
    materials: Mapping[str, float] = field(default_factory=dict)
    goal: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Criterion:
    """One condition of a success test.

    Attributes:
        name: Short name, stored with the outcome.
        value: What was measured, in SI units, or yes and no.
        holds: Whether the condition holds.
        text: What is wanted and what was found, for a person.
    """

    name: str
    value: float | bool
    holds: bool
    text: str


class Task(ABC):
    """Base of all tasks.

    Class attributes:
        name: Command name.
        summary: One sentence for a person.
        objects: Names of the objects whose poses count.
        skills: What is taught, in order per hand.
        coordination: Pairs of skills (by index) that start together.
        precedence: Pairs of skills (by index) of which the first must be finished before the second starts.
        sides: Angles in [rad] by which the robot's place may be turned about where the hands work, 0 being the place of
            the demonstration: for objects that lie any way round and cannot always be come at from the same side.
        working_height: Height of the base in [m] at which the hands work where the demonstration shows no squat: the
            standing controller then has the legs, and no foot turns under a load. None leaves them to the walking
            policy, which gives way when the robot presses against something.
        hold: How long the success test must hold at the end, in [s].
        contact_pairs: Pairs of bodies whose contact force is recorded.
        grasp_pairs: Those of them that must be in contact at the end; one that is not tells that an object was lost.
        viewpoint: A camera that stands beside the scene; None if there is none.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    objects: ClassVar[tuple[str, ...]]
    skills: ClassVar[tuple[Skill, ...]]
    coordination: ClassVar[tuple[tuple[int, int], ...]] = ()
    precedence: ClassVar[tuple[tuple[int, int], ...]] = ()
    sides: ClassVar[tuple[float, ...]] = (0.0,)
    working_height: ClassVar[float | None] = None
    hold: ClassVar[float] = 1.0
    distributions: ClassVar[tuple[str, ...]] = ("D0", "D1")
    contact_pairs: ClassVar[tuple[tuple[str, str], ...]] = ()
    grasp_pairs: ClassVar[tuple[tuple[str, str], ...]] = ()
    viewpoint: ClassVar[Viewpoint | None] = None

    @property
    @abstractmethod
    def robot(self) -> Robot:
        """The robot that does it."""

    @abstractmethod
    def spec(self, visual: bool = False) -> mujoco.MjSpec:
        """Return the scene with the robot; ``visual`` adds what only pictures need."""

    @abstractmethod
    def sample(self, distribution: str, rng: np.random.Generator) -> Layout:
        """Draw where everything starts.

        Raises:
            UnknownNameError: The distribution does not exist.
        """

    @abstractmethod
    def nominal(self) -> Layout:
        """Return the middle of the narrow distribution, for demonstrations and pictures."""

    def apply_materials(self, world: World, materials: Mapping[str, float]) -> None:  # noqa: B027 - optional
        """Put drawn material parameters into the model."""

    @abstractmethod
    def criteria(self, world: World) -> Iterator[Criterion]:
        """Evaluate the success test on the present state, what fails most and costs least first."""

    def check_distribution(self, distribution: str) -> None:
        """Refuse an unknown distribution.

        Raises:
            UnknownNameError: Lists the ones that exist.
        """
        if distribution not in self.distributions:
            raise UnknownNameError(f"distribution of {self.name}", distribution, self.distributions)
