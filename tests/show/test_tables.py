"""Tables of results: what they write, and what they refuse."""

import pytest

from book.show import Table


def test_numbers_are_written_as_asked_and_stand_right():
    table = Table(
        {"N": [10, 100], "gain": [(-0.0412, 0.002), (0.01, 0.003)], "way": ["a-b", "c"]},
        {"gain": ".3f"},
        best=["N"],
    )
    assert table.rows == [["10", "−0.041 ± 0.002", "a-b"], ["100", "0.010 ± 0.003", "c"]]
    shown = table._repr_html_()
    assert '<td class="number"><strong>100</strong></td>' in shown
    assert "<td>a-b</td>" in shown and shown.count('scope="col"') == 3


def test_texts_are_escaped():
    assert "&lt;b&gt;" in Table({"<b>": ["<b>"]})._repr_html_()


def test_bad_columns():
    with pytest.raises(ValueError, match="columns must be of one length"):
        Table({"a": [1], "b": [1, 2]})
    with pytest.raises(ValueError, match="there is no column c"):
        Table({"a": [1]}, {"c": ".2f"})
