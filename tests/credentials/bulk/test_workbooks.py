"""What an .xlsx workbook says, and what a hostile one cannot do."""

import csv
import io
import socket
import zipfile
from datetime import date, datetime

import pytest
from openpyxl import Workbook
from openpyxl.packaging.relationship import Relationship
from openpyxl.workbook.external_link.external import ExternalBook, ExternalLink

from core.errors import Invalid
from credentials.bulk import workbooks
from credentials.bulk.reading import CSVFile
from tests.credentials.bulk.workbooks import (
    SHEET,
    part_of,
    saved,
    with_part,
    workbook,
)


def rows_of(data):
    return list(csv.reader(io.StringIO(workbooks.read_workbook(data), newline="")))


def refusal(data):
    with pytest.raises(Invalid) as raised:
        workbooks.read_workbook(data)
    return raised.value.code, raised.value.message


def test_cells_are_what_a_person_sees():
    data = workbook(
        ["name", "born", "seen", "number", "post code", "member", "share"],
        ['Ann "A", b', date(1990, 5, 17), datetime(2026, 1, 2, 3, 4), 7.0, 1234, True, 1.5],
        formats={"E2": "00000"},
    )  # fmt: skip
    assert rows_of(data)[1] == [
        'Ann "A", b', "1990-05-17", "2026-01-02 03:04:00", "7", "01234", "true", "1.5",
    ]  # fmt: skip


def test_a_row_keeps_its_number_and_a_formula_is_what_was_computed():
    data = workbook(["a", "b"], [], ["x", "=1+1"])
    assert rows_of(data) == [["a", "b"], [], ["x", ""]]  # never computed: no value
    sheet = (
        part_of(data, SHEET).replace("<v></v>", "<v>2</v>").replace("<v/>", "<v>2</v>")
    )
    assert "<f>1+1</f>" in sheet
    assert rows_of(with_part(data, SHEET, sheet))[2] == ["x", "2"]


def test_the_first_sheet_that_is_shown_is_taken():
    made = Workbook()
    made.active.append(["hidden"])
    made.active.sheet_state = "hidden"
    made.create_sheet("B").append(["shown"])
    assert rows_of(saved(made)) == [["shown"]]


def test_what_inflates_without_end_is_not_inflated():
    data = with_part(workbook(["a"]), "xl/big.xml", b"0" * (workbooks.MAX_INFLATED + 1))
    assert len(data) < 200_000
    assert refusal(data)[0] == "malformed_workbook" and "large" in refusal(data)[1]


def test_a_part_that_says_it_is_small_is_inflated_no_further():
    data = bytearray(workbook(["a"]))
    sheet = part_of(bytes(data), SHEET)
    bomb = sheet.replace("</sheetData>", " " * 5_000_000 + "</sheetData>")
    data = bytearray(with_part(bytes(data), SHEET, bomb))
    entry = data.rindex(SHEET.encode()) - 46  # of the directory, which names it last
    assert data[entry : entry + 4] == b"PK\x01\x02"
    assert int.from_bytes(data[entry + 24 : entry + 28], "little") == len(bomb)
    data[entry + 24 : entry + 28] = (900).to_bytes(4, "little")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.getinfo(SHEET).file_size == 900
    assert refusal(bytes(data))[0] == "malformed_workbook"


def test_an_archive_of_many_parts_is_not_read():
    file = io.BytesIO(workbook(["a"]))
    with zipfile.ZipFile(file, "a") as archive:
        for number in range(workbooks.MAX_PARTS):
            archive.writestr(f"xl/{number}.xml", "")
    assert "large" in refusal(file.getvalue())[1]


def test_a_cell_of_ten_megabytes_is_refused_at_once():
    """openpyxl would cut it, so it is put into the place of a short one."""
    data = workbook(["name"], ["long"])
    long = part_of(data, SHEET).replace(">long<", f">{'x' * 10_000_000}<")
    data = with_part(data, SHEET, long)
    assert len(data) < 100_000
    with pytest.raises(Invalid) as raised:
        list(CSVFile(workbooks.read_workbook(data), "comma").read_cells())
    assert raised.value.code == "malformed_csv" and len(raised.value.message) < 200
    with pytest.raises(Invalid) as raised:
        list(CSVFile(f"name\n{'x' * 10_000_000}\n", "comma").read_cells())
    assert raised.value.code == "malformed_csv" and len(raised.value.message) < 200


@pytest.mark.parametrize(
    "target", ["http://127.0.0.1:{port}/x", "file:///etc/hostname"]
)
def test_what_a_workbook_refers_to_is_not_read(target):
    """Neither by a link to another workbook nor by a formula that calls a program."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        target = target.format(port=listening.getsockname()[1])
        made = Workbook()
        made.active.append(["a", "b", "c"])
        calls = ["=[1]Other!A1", f'=WEBSERVICE("{target}")', "=cmd|'/C calc'!A0"]
        made.active.append([*calls, "x"])
        made.active["A1"].hyperlink = target
        link = ExternalLink(externalBook=ExternalBook(id="rId1"))
        kind = "externalLinkPath"
        link.file_link = Relationship(type=kind, Target=target, TargetMode="External")
        made._external_links.append(link)
        data = saved(made)
        assert target in part_of(data, "xl/externalLinks/_rels/externalLink1.xml.rels")
        assert rows_of(data) == [["a", "b", "c"], ["", "", "", "x"]]
        listening.settimeout(0)
        with pytest.raises(BlockingIOError):
            listening.accept()


def test_much_text_of_one_shared_cell_is_refused(monkeypatch):
    monkeypatch.setattr(workbooks, "MAX_TEXT", 100_000)
    data = workbook(*(["x" * 30_000] for _ in range(5)))
    assert refusal(data)[0] == "malformed_workbook"


ENTITY = """<?xml version="1.0"?><!DOCTYPE s [<!ENTITY a "b">%s]>"""
OUTSIDE = '<!ENTITY c SYSTEM "file:///etc/hostname">'


@pytest.mark.parametrize("more", ["", OUTSIDE])
def test_entities_are_not_resolved(more):
    """With lxml, which the product does not have, some parts are read without them."""
    data = workbook(["a"])
    for part in (SHEET, "xl/workbook.xml", "xl/styles.xml"):
        bad = (ENTITY % more) + part_of(data, part).replace("<?xml version='1.0'?>", "")
        try:
            assert rows_of(with_part(data, part, bad)) == [["a"]]
        except Invalid as error:
            assert error.code == "malformed_workbook"


def test_a_far_row_or_column_costs_nothing():
    data = workbook(["a"], ["b"])
    sheet = part_of(data, SHEET)
    far = sheet.replace('r="A2"', 'r="XFD2"').replace('r="2"', 'r="1048576"')
    assert far != sheet
    assert refusal(with_part(data, SHEET, far))[0] == "too_many_rows"
    wide = sheet.replace('r="A2"', 'r="XFD2"')
    assert rows_of(with_part(data, SHEET, wide)) == [["a"], []]


@pytest.mark.parametrize(
    "data", [b"PK\x03\x04", b"\xd0\xcf\x11\xe0old", workbook(["a"])[:-30]]
)
def test_what_is_no_workbook_is_refused(data):
    assert workbooks.is_workbook(data)
    assert refusal(data)[0] == "malformed_workbook"


def test_an_archive_without_sheets_is_refused():
    data = with_part(workbook(["a"]), "xl/workbook.xml", "<workbook/>")
    assert refusal(data)[0] == "malformed_workbook"
