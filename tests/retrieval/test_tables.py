"""Rows with the headers of their cells, whatever the shape of the table."""

from __future__ import annotations

import pytest

from crag_core.retrieval.readers.tables import show_markdown_tables, show_rows


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        ("Region,2022,2023|North,1200,1350", "Region: North; 2022: 1200; 2023: 1350"),
        ("Size,5%,10%|Small,1,2", "Size: Small; 5%: 1; 10%: 2"),
        ("Name,1st shift,3|Ida,x,", "Name: Ida; 1st shift: x"),
        ("Name,Jan 2021,Feb 2021|Ida,3,4", "Name: Ida; Jan 2021: 3; Feb 2021: 4"),
        ("1,2,3|4,5,6", "1 | 2 | 3\n4 | 5 | 6"),
        ("Route,Price", "Route | Price"),
        ("Name,Alias|Ada,Ada", "Name: Ada; Alias: Ada"),
        ("Plan,A,B|Wifi,yes,yes|yes,yes,no", "Plan: Wifi; A: yes; B: yes\nPlan: yes; A: yes; B: no"),
        # Facts: above a table, in place of one, and a note below it.
        ("Invoice,2026-118,|Due,30 days,||Item,Qty,Price|Rope,4,12.5||Note,By transfer,",
         "Invoice: 2026-118\nDue: 30 days\n\nItem: Rope; Qty: 4; Price: 12.5\n\nNote: By transfer"),
        ("Report date,2026-03-01|Prepared by,Nils", "Report date: 2026-03-01\nPrepared by: Nils"),
        ("Date,22 January 2025|Minutes,Fenella", "Date: 22 January 2025\nMinutes: Fenella"),
        ("Column 1,Column 2|rope,buoy", "Column 1: rope; Column 2: buoy"),
        # Two rows of headers, of which the first is spanned.
        ("Pier,Summer,Summer,Winter,Winter|Pier,Day,Week,Day,Week|North,20,120,12,70",
         "Pier: North; Summer Day: 20; Summer Week: 120; Winter Day: 12; Winter Week: 70"),
        # Sections: a line alone, or merged over the table; a last line is a note.
        ("Berth,Length,Price|North pier,,|N1,7,20|N2,8,22|South pier,South pier,South pier|S1,9,25|All in euros.,,",
         "North pier\nNorth pier; Berth: N1; Length: 7; Price: 20\nNorth pier; Berth: N2; Length: 8; Price: 22\n"
         "South pier\nSouth pier; Berth: S1; Length: 9; Price: 25\nAll in euros."),
        ("Fares of the year,,|Route,Price,Note|R1,8.40,x", "Fares of the year\nRoute: R1; Price: 8.40; Note: x"),
        ("a,b|x,y,z", "a: x; b: y; column 3: z"),
        # Tables beside and below each other: a part without a header continues under the one above.
        ("Route,Price,,Ship,Crew|R1,8.4,,Ada,12||R3,7||Harbours|Name,Depth|Kelderport,11",
         "Route: R1; Price: 8.4\n\nShip: Ada; Crew: 12\n\nRoute: R3; Price: 7\n\n"
         "Harbours\nName: Kelderport; Depth: 11"),
        ("Name,Ulla,,Date,2024-05-04|Boat,Thrift,,Length,9 m",
         "Name: Ulla\nBoat: Thrift\n\nDate: 2024-05-04\nLength: 9 m"),
        ("Day,Min|Monday,\u22122|Friday,3", "Day: Monday; Min: \u22122\nDay: Friday; Min: 3"),
        ("Author:,Ann|State:,draft", "Author: Ann\nState: draft"),
    ],
)  # fmt: skip
def test_rows(rows: str, shown: str) -> None:
    assert show_rows([row.split(",") for row in rows.split("|")]) == shown


def test_a_row_that_is_wider_than_a_chunk_says_in_each_line_of_what_it_is() -> None:
    names = [f"Attribute {at}" for at in range(1, 61)]
    lines = show_rows([["Ship", *names], ["Petrel", *map(str, range(100, 160))]]).split("\n")
    assert len(lines) > 1 and all(line.startswith("Ship: Petrel; Attribute") and len(line) <= 700 for line in lines)
    assert "; ".join(lines).count("Attribute") == 60


def test_tables_of_markdown_but_not_those_in_code() -> None:
    table = "| Berth | Winter |\n|---|:-:|\n| B1 | 11 |\n| B\\|2 | 12 |"
    shown = "Berth: B1; Winter: 11\nBerth: B|2; Winter: 12"
    assert show_markdown_tables(f"# Berths\n\n{table}\n\nEnd | of | it") == f"# Berths\n\n{shown}\n\nEnd | of | it"
    assert show_markdown_tables(f"```\n{table}\n```\n\n{table}") == f"```\n{table}\n```\n\n{shown}"
    assert show_markdown_tables("a | b\n\n| no | rule |") == "a | b\n\n| no | rule |"
