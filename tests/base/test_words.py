import pytest

from crag_core.base.text.words import estimate_tokens, foreign_language, words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The ferry leaves at 8.", ["the", "ferry", "leaves", "at", "8"]),
        ("Don't; it's John’s", ["don't", "it's", "john’s"]),
        ("e-mail, 3.14 and U.S.", ["e-mail", "3.14", "and", "u.s"]),
        ("snake_case", ["snake", "case"]),
        ("Größe über Straße", ["größe", "über", "straße"]),
        ("東京都", ["東京", "京都"]),
        ("東", ["東"]),
        ("犬です。猫", ["犬で", "です", "猫"]),
        ("iPhoneの価格15円", ["iphone", "の価", "価格", "15", "円"]),
        ("서울 인구", ["서울", "인구"]),
        ("سعر العبارة", ["سعر", "العبارة"]),
        ("…—?!", []),
        ("", []),
    ],
)
def test_words_of_many_scripts(text: str, found: list[str]) -> None:
    assert words(text) == found


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        (" \n\t", 0),
        ("word", 1),
        ("two words", 2),
        ("one two three", 3),
        ("one two three four", 5),
        ("word " * 10, 13),
        ("word " * 100, 130),
        ("東京都の人口", 7),  # 6 characters, each a word: 7.8
        ("東京 Tokyo", 3),  # 2 characters and a word: 3.9
    ],
)
def test_tokens_are_words_times_one_point_three_rounded_down(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Wie lange dauert die Lieferung?", "German"),
        ("Combien de temps dure la garantie ?", "French"),
        ("¿Cuándo sale el primer barco?", "Spanish"),
        ("Quanto costa il biglietto per il cane?", "Italian"),
        ("Quando é que o barco parte?", "Portuguese"),
        ("Hoe laat is de eerste boot?", "Dutch"),
        ("Vad är priset för en hund?", "Swedish"),
        ("Hva er prisen på en billett?", "Danish or Norwegian"),
        ("Ile kosztuje bilet dla psa i jak długo jest ważny?", "Polish"),
        ("İlk feribot ne zaman kalkıyor ve bilet ne kadar?", "Turkish"),
        ("Con chó được đi miễn phí không?", "Vietnamese"),
        ("una la", "another language"),
        # English, whatever names, codes and foreign words are in it
        ("When does the first boat leave?", ""),
        ("Do I need to do this to get in?", ""),
        ("Who is Juan de la Cruz, and what does he do in San José?", ""),
        ("What does “der Zug ist weg” mean?", ""),
        ("In what year was Les Misérables by Victor Hugo written?", ""),
        ("y = a * x + b", ""),
        ("sku,name,price\nA-17,drill,40\nB-2,saw,25", ""),
        ("def f(a, o): return a", ""),
        ("Rio de Janeiro", ""),
        ("Kabine 4, Deck 2", ""),
        ("Паром уходит в девять утра, и это не дорого.", ""),
        ("", ""),
    ],
)
def test_a_text_is_foreign_where_its_common_words_are(text: str, language: str) -> None:
    assert foreign_language(text) == language
