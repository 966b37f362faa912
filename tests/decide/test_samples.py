"""What a measured quantity comes to, and how sure that is."""

from __future__ import annotations

import math
import random
import statistics

import pytest

from codeai_lab.decide.samples import Sample, estimate


def test_statistics_are_the_usual_ones() -> None:
    """Mean, standard deviation over n - 1, and its share of the root of n."""
    values = [3.0, 1.5, 2.5, 3.0, -4.0]
    sample = Sample.of(values)
    assert (sample.size, sample.mean) == (5, statistics.fmean(values))
    assert sample.sd == pytest.approx(statistics.stdev(values))
    assert sample.variance == pytest.approx(statistics.variance(values))
    assert sample.se == pytest.approx(statistics.stdev(values) / math.sqrt(5))


def test_order_and_form_change_no_bit() -> None:
    """The same values in another order, or counted, give the same statistics to the last bit."""
    values = [random.Random(1).random() for _ in range(50)] * 2
    shuffled = random.Random(2).sample(values, len(values))
    counted = Sample.counted({value: values.count(value) for value in values})
    for other in (Sample.of(shuffled), counted):
        assert (other.mean, other.sd, other.se_of_sd) == (
            Sample.of(values).mean,
            Sample.of(values).sd,
            Sample.of(values).se_of_sd,
        )


def test_a_single_value_has_no_spread_that_could_be_known() -> None:
    """SA3: one value has a mean and nothing else; two that are alike have a spread, and it is 0."""
    alone = Sample.of([7])
    assert (alone.mean, alone.variance, alone.sd, alone.se, alone.se_of_sd) == (7, None, None, None, None)
    assert estimate(1.5, alone) == {"closed_form": 1.5, "sampled": 7, "se": None}
    alike = Sample.of([7, 7])
    assert (alike.variance, alike.sd, alike.se, alike.se_of_sd) == (0, 0, 0, 0)


@pytest.mark.parametrize("values", [[], [math.nan], [math.inf]])
def test_a_sample_has_values(values: list[float]) -> None:
    """No values, or values that are no numbers, make no sample."""
    with pytest.raises(ValueError, match="at least one value"):
        Sample.of(values)


def test_what_was_counted_as_never_is_left_out() -> None:
    """A value with a count of 0 was not measured."""
    assert Sample.counted({1: 3, 2: 0}) == Sample.of([1, 1, 1])


def test_a_share_is_a_sample_of_zero_and_one() -> None:
    """The share for which something holds has a standard error like any mean."""
    share = Sample.of([20, 20, 3, 4]).where(lambda value: value == 20)
    assert share == Sample.of([0, 0, 1, 1])
    assert share.mean == 0.5


def test_squares_around_the_true_mean_give_the_variance() -> None:
    """The mean of the squared distances from the true mean estimates the variance without bias."""
    assert Sample.of([1, 3]).squares_around(2).mean == 1
    assert Sample.of([1, 3, 3]).squares_around(0) == Sample.of([1, 9, 9])


def test_the_error_of_a_standard_deviation() -> None:
    """For normal values it is sd / sqrt(2 n), nearly."""
    dice = random.Random(3)
    sample = Sample.of([dice.gauss(0, 2) for _ in range(20_000)])
    assert sample.se_of_sd == pytest.approx(2 / math.sqrt(2 * 20_000), rel=0.05)


def test_the_recorded_form_is_the_shorter_one() -> None:
    """Values where most differ, counts by name where few do, whole numbers without a point."""
    assert Sample.of([2.5, 1, 2.5]).recorded() == {"values": [1, 2.5, 2.5]}
    assert Sample.counted({1: 10, 0: 5, 2.5: 1}).recorded() == {"counts": {"0": 5, "1": 10, "2.5": 1}}


def test_an_estimate_stands_beside_its_closed_form() -> None:
    """Theory, measurement and its standard error, in one object; theory may have nothing to say."""
    assert estimate(1.5, Sample.of([1, 2])) == {"closed_form": 1.5, "sampled": 1.5, "se": 0.5}
    assert estimate(None, Sample.of([1, 1]))["closed_form"] is None
