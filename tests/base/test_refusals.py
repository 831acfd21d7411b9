"""Replies that say nothing but that they have no answer, told from answers that merely hold such words."""

import pytest

from crag_core.base.text.refusals import is_refusal, may_become_refusal

REFUSALS = """\
CANNOT ANSWER | cannot answer. | **CANNOT ANSWER** | “Cannot answer” | CANNOT_ANSWER | Unanswerable | unanswerable.
Answer: unanswerable | The text does not say. | The text does not say [1].
The text doesn’t say when the ferry leaves. | The provided context does not contain any information about the price.
I'm sorry, but I cannot answer this question based on the provided context. | I don't know.
I do not know the answer. | I do not have enough information to answer this question.
Based on the provided passages, it is not possible to determine the price.
There is no information about the fare in the excerpts. | There is no mention of dogs.
No information is given on this. | Not specified. | Not mentioned in the text. | N/A | Unknown.
It is not stated in the document. | The answer is not in the excerpts.
The question cannot be answered from the evidence. | This cannot be determined.
None of the documents mention a fare. | None of the passages answers the question.
The departure time is not specified in the document.
The price of a dog cannot be determined from the given evidence. | I couldn't find it. | Insufficient information.
Not enough information to answer. | Unable to answer. | Sorry, I can't help with that.
Unfortunately, the documents do not mention it. Please contact the office.
The documents do not mention child fares. They only mention adult fares. | The evidence is insufficient.
The context lacks this information. | It does not say. | No answer. | Empty Response
The documents I have don't cover that. | There is nothing in the handbook about that.
No relevant documents were found. | The documents do not contain this information.
Unfortunately I don't have enough information to answer that. | Das geht aus dem Text nicht hervor.
Das weiß ich nicht. | Ich weiß es nicht. | Keine Angabe.
Die Frage kann anhand der Auszüge nicht beantwortet werden. | Der Text enthält keine Angaben dazu.
Im Dokument steht nichts darüber. | Leider geht das aus den Dokumenten nicht hervor.
Aucune information à ce sujet. | Le texte ne le dit pas. | Je ne sais pas. | Ce n'est pas précisé dans le document.
No hay información. | El texto no lo menciona. | 文中没有提到。 | 无法回答。
I cannot answer the question as it is not stated in the given information.
The answer to the question is not provided in the given text.
No specific information about the price is provided in the excerpts.
There isn't enough information in the text to answer. | There is not enough information.
The evidence provided does not hold the answer. | The evidence does not provide information about X.
The passage doesn't give an answer to this question. | I could not find any information about X in the documents.
I was unable to find the fare. | It's not clear from the text. | It is unclear.
The excerpt [1] does not state the fare. | Excerpt [2] does not mention it.
Based on the evidence provided, I cannot determine the answer. | It's not mentioned. | We do not know.
That information is not in the documents. | That information is not available.
The specific fare is not mentioned in any of the excerpts. | There's no information on that.
This question is unanswerable. | Cannot be answered from the evidence. | Not answerable. | Not given.
Not available. | Not found. | I'm not sure. | Information not available. | Data not found
None of the evidence mentions dogs. | Answer not found. | No answer found in the text.
There is no answer in the text. | I have no information about that.
The evidence does not contain the answer to the question. | The question is not answered in the passage.
The given evidence does not hold the answer to the question.
I apologize, but the provided evidence does not contain information on that. If you have other files, send them.
As the evidence does not mention it, I cannot answer.
Since the text does not mention the price, it cannot be determined.
The information provided does not specify when the boat leaves.
There is insufficient evidence to answer the question. | Evidence does not hold the answer.
The evidence is silent on this. | Die Dokumente enthalten keine Informationen zu dieser Frage.
Diese Frage lässt sich anhand der vorliegenden Texte nicht beantworten.
Les documents fournis ne contiennent pas cette information. | Je ne peux pas répondre à cette question.
根据提供的资料，无法回答这个问题。 | Not enough evidence. | Nothing about this in the documents.
There's nothing about it. | Not in the text.
The answer is unknown. | Cannot be determined from the text | Not sure. | I have no idea.
This information is not provided. | The requested information is not included in the passages.
"""
ANSWERS = """\
Nine euros [1]. | Dogs cannot answer. | None. | No. | No, it was closed in 1912. | At ten.
The ferry does not leave in winter. | Nothing but water. | The ferry does not include bicycles in the fare [1].
Passengers do not need to provide any document. | The documents do not have to be originals.
The text does not mention child fares, but adults pay nine euros [1].
The text does not say when. Adults pay nine euros [1]. | It is not known who built the lighthouse [1].
The source of the river is not known. | No information desk is open on Sundays. | Not more than five kilograms.
The builder is unknown [1]. | Dogs are not allowed. | There is no ferry on Sundays.
There is no charge for children [2]. | The museum cannot answer questions by telephone.
Unknown artists painted the ceiling. | Insufficient evidence was the reason for the acquittal [1].
The contract does not specify a notice period.
The form must be signed; it does not say otherwise in the law. It costs 5 pounds.
The document must not be older than three months. | The documents say that the ferry leaves at nine.
The context states that dogs pay half. | The text of the treaty does not mention Vennick.
Unanswerable questions are given to the board. | Not found items are kept for a year.
I do not like spam is the title [1]. | Information is not available on Sundays at the harbour.
The information desk does not answer calls [1]. | The evidence was not admitted by the court [1].
This cannot be refunded [1]. | It cannot be cancelled. | It is not possible to bring dogs [1].
No document is needed to board. | No documents have to be shown. | The given name is not stated on the ticket.
The answer is 42. | Die Unterlagen müssen nicht beglaubigt sein. | Der Text ist nicht von Goethe.
Das ist nicht erlaubt. | Das Dokument darf nicht älter sein als drei Monate. | Keine Hunde erlaubt.
Das kann nicht storniert werden. | In den Unterlagen steht, dass keine Gebühr anfällt.
Le texte dit que le ferry part à neuf heures. | No hay ferry los domingos. | However, it leaves at nine.
Please bring a ticket. | If you are late, wait.
"""


def listed(replies: str) -> list[str]:
    return [one.strip() for line in replies.splitlines() for one in line.split(" | ")]


@pytest.mark.parametrize("reply", [*listed(REFUSALS), "CANNOT\nANSWER: the evidence names no fare."])
def test_a_reply_that_only_says_that_it_has_no_answer_is_a_refusal(reply: str) -> None:
    assert is_refusal(reply) and is_refusal(f"“{reply}”") and is_refusal(f"**{reply}**\n")


@pytest.mark.parametrize("reply", [*listed(ANSWERS), ""])
def test_an_answer_that_merely_holds_such_words_is_none(reply: str) -> None:
    assert not is_refusal(reply)


@pytest.mark.parametrize("first", ["I don't know.", "The text does not say."])
def test_what_follows_a_refusal_may_be_the_answer(first: str) -> None:
    assert is_refusal(f"{first} Please ask at the harbour office. It only mentions the ferry.")
    assert not is_refusal(f"{first} The ferry leaves at nine [1].")
    assert not is_refusal(f"{first[:-1]}, but the ferry leaves at nine [1].")


@pytest.mark.parametrize("reply", ["CANNOT ANSWER", "The text does not say.", "I do not know. Please ask."])
def test_a_refusal_is_held_back_from_its_first_letter(reply: str) -> None:
    assert all(may_become_refusal(reply[:end]) for end in range(len(reply) + 1))


@pytest.mark.parametrize("reply", ["The dues", "Nine euros", "Das Schiff", "The text says so. It", "At"])
def test_an_answer_is_held_back_no_longer_than_it_may_be_one(reply: str) -> None:
    assert not may_become_refusal(reply)
