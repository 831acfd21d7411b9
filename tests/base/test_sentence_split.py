"""Where one strip ends and the next begins, in many scripts; every visible character lies in exactly one strip."""

import re

import pytest

from crag_core.base.text.sentences import MAX_STRIP, split


def pieces(text: str) -> list[str]:
    return [text[start:end] for start, end in split(text)]


@pytest.mark.parametrize(
    "sentences",
    [
        ["The ferry leaves at eight.", "It returns at noon!", "Does it run on Sunday?", "Nobody knows."],
        ["Dr. Weber met Prof. Klein and Mrs. Jones.", "They spoke for hours."],
        ["Bring water, snacks, etc. and a coat, e.g. Gore-Tex.", "It rains often."],
        ["Compare cf. Smith vs. Miller in vol. 3, pp. 20 and fig. 4.", "They disagree."],
        ["J. R. R. Tolkien wrote it with C. S. Lewis nearby.", "Readers love it."],
        ["The U.S. Navy sold the old ship.", "A museum bought it."],
        ["The fare rose by 3.5 percent to 12.80 euros.", "Children pay half."],
        ["It was built in 1999.", "The company was proud."],
        ["The total was 42.", "Nobody had expected that."],
        ["The boat leaves at 9 a.m. and returns at 5 p.m. daily.", "Tickets are sold on board."],
        ["The boat leaves at 9 a.m.", "Tickets are sold on board."],
        ["See room No. 12 on the left.", "The door is blue."],
        ["Die Fähre fährt am 3. Oktober nicht.", "Am 4. Oktober fährt sie wieder."],
        ["Im 19. Jahrhundert gewann sie den 2. Platz.", "Das 1. Schiff fuhr später."],
        ["Fahren Sie mit der Linie 5.", "Dann steigen Sie in Kiel um."],
        ["I am now 42.", "My sister is already 50."],
        ["Das gilt z. B. für Hunde und d. h. auch für Katzen.", "Vögel sind frei."],
        ["Das gilt z.B. für Hunde bzw. Katzen, ggf. Maulkorb.", "Vögel sind frei."],
        ["Das Büro (Nr. 7) von Hr. Maier ist offen.", "Bitte klopfen Sie an."],
        ["M. Dupont habite à Paris depuis mai.", "Mme. Durand aussi, dit-on."],
        ["She waited … and then she left the pier.", "Nobody followed her."],
        ["She waited... and then she left the pier.", "Nobody followed her."],
        ["She waited and waited...", "Then she left the pier."],
        ["“The ferry is late.”", "He said it twice to her.", "(Nobody had listened.)", "She nodded at him."],
        ["„Die Fähre ist spät.“", "Er sagte es zweimal laut."],
        ["»Die Fähre ist spät.«", "Er sagte es zweimal laut."],
        ["Really?! That cannot be true.", "Yes it can be."],
        ["Wait for the captain!", '"Now we can go," she said.'],
        ["Open https://example.org/fares.html?x=1.2 now.", "Then read config.toml and app.py carefully."],
        ["Write to captain.smith@ferry.example.org today.", "He answers within 24 hours."],
        ["Version 2.10.3 fixes the bug.", "Install it with pip."],
    ],
    ids=lambda sentences: sentences[0][:40],
)
def test_sentences_end_where_a_reader_would_end_them(sentences: list[str]) -> None:
    assert pieces(" ".join(sentences)) == sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (
            "渡船八点出发。中午返回！星期天开吗？没有人知道。",
            ["渡船八点出发。", "中午返回！", "星期天开吗？", "没有人知道。"],
        ),
        ("彼は「行こう。」と言った。雨が降っていた。", ["彼は「行こう。」", "と言った。", "雨が降っていた。"]),
        ("تغادر العبارة في الثامنة. هل تعود ظهرا؟ نعم تعود كل يوم.", None),
        ("नौका आठ बजे निकलती है। वह दोपहर को लौटती है। कोई नहीं जानता।", None),
        ("Կապույտ նավը մեկնում է։ Այն վերադառնում է։", None),
        ("فیری آٹھ بجے روانہ ہوتی ہے۔ وہ دوپہر کو واپس آتی ہے۔", None),
        ("배는 여덟 시에 떠난다. 정오에 돌아온다.", None),
        ("Паром уходит в восемь. Он вернётся в полдень.", None),
    ],
    ids=["chinese", "japanese", "arabic", "hindi", "armenian", "urdu", "korean", "russian"],
)
def test_sentences_of_other_scripts(text: str, sentences: list[str] | None) -> None:
    assert pieces(text) == (sentences or re.split(r"(?<=[.؟।։۔]) ", text))


@pytest.mark.parametrize(
    ("text", "strips"),
    [
        ("Yes. The ferry runs on Sunday.", ["Yes. The ferry runs on Sunday."]),
        ("Note: Oh. No dogs are allowed.", ["Note: Oh. No dogs are allowed."]),
        ("No dogs are allowed. Sorry.", ["No dogs are allowed.", "Sorry."]),
        ("好。狗不能上船。", ["好。狗不能上船。"]),
    ],
)
def test_a_sentence_that_says_nothing_alone_joins_the_next(text: str, strips: list[str]) -> None:
    assert pieces(text) == strips


@pytest.mark.parametrize(
    ("text", "strips"),
    [
        ("- Dogs pay half.\n- Cats are free.", ["- Dogs pay half.", "- Cats are free."]),
        ("* One apple\n* Two pears\n+ Three figs", ["* One apple", "* Two pears", "+ Three figs"]),
        ("• Eins davon\n• Zwei davon", ["• Eins davon", "• Zwei davon"]),
        ("1. Switch off the engine.\n2. Close the valve.", ["1. Switch off the engine.", "2. Close the valve."]),
        ("1) First of all\n(2) Second of all", ["1) First of all", "(2) Second of all"]),
        ("a) Alpha\nb) Beta", ["a) Alpha", "b) Beta"]),
        (
            "Take with you:\n- a warm coat and\n  a hat\n- food",
            ["Take with you:", "- a warm coat and\n  a hat", "- food"],
        ),
        ("- Dogs pay half. Cats are always free.\n- Done.", ["- Dogs pay half.", "Cats are always free.", "- Done."]),
    ],
)
def test_list_items_stand_alone(text: str, strips: list[str]) -> None:
    assert pieces(text) == strips


def test_a_table_is_split_into_rows_with_its_rule_at_the_header() -> None:
    text = "| Route | Fare |\n|:---|---:|\n| North. South | 9.50 |\n| East | 7 |"
    assert pieces(text) == ["| Route | Fare |\n|:---|---:|", "| North. South | 9.50 |", "| East | 7 |"]


@pytest.mark.parametrize("fence", ["```", "~~~"])
def test_code_stays_whole(fence: str) -> None:
    code = f"{fence}python\n# It works. Really.\n\n| not | a row |\n- not an item\n{fence}"
    assert pieces(f"Run this example now.\n{code}\nThen stop reading.") == [
        "Run this example now.",
        code,
        "Then stop reading.",
    ]


@pytest.mark.parametrize(
    ("text", "strips"),
    [
        ("# Fares\n\nDogs pay half. Cats pay nothing.", ["# Fares\n\nDogs pay half.", "Cats pay nothing."]),
        ("# Fares\n## Dogs\n- They pay half.", ["# Fares\n## Dogs\n- They pay half."]),
        ("Dogs pay half.\n# The end", ["Dogs pay half.", "# The end"]),
        ("# Only a heading", ["# Only a heading"]),
        ("# Table\n| a | b |\n|---|---|\n| 1 | 2 |", ["# Table\n| a | b |\n|---|---|", "| 1 | 2 |"]),
        ("#hashtag is no heading. It is just text.", ["#hashtag is no heading.", "It is just text."]),
    ],
)
def test_a_heading_reads_with_what_it_announces(text: str, strips: list[str]) -> None:
    assert pieces(text) == strips


def test_a_long_stretch_without_a_stop_is_cut_at_spaces() -> None:
    text = "word " * 500
    found = pieces(text)
    assert all(len(piece) <= MAX_STRIP and set(piece.split()) == {"word"} for piece in found)
    assert " ".join(found).split() == text.split()
    assert len(found) <= 8


def test_a_row_of_a_table_is_one_sentence_whatever_its_cells_hold() -> None:
    rows = [
        "route: R1; category: Adult; remarks: 8.40 a head. No discount. See p. 3",
        "route: R1; category: Dog; remarks: no; see the rules",
        "No.: 3; Price incl. VAT: 4.50",
    ]
    text = "Fares of 2025\n" + "\n".join(rows) + "\n\nNote: bring a coat; it rains. The end."
    found = [text[start:end] for start, end in split(text)]
    assert found == ["Fares of 2025", *rows, "Note: bring a coat; it rains.", "The end."]
