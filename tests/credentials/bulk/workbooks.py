"""Workbooks that tests send, as people and attackers make them."""

import io
import zipfile

from openpyxl import Workbook

SHEET = "xl/worksheets/sheet1.xml"


def workbook(*rows, formats=None):
    """Return an .xlsx file. formats: the number formats of cells, as in {"B2": "000"}."""
    made = Workbook()
    for row in rows:
        made.active.append(row)
    for place, number_format in (formats or {}).items():
        made.active[place].number_format = number_format
    return saved(made)


def saved(made):
    file = io.BytesIO()
    made.save(file)
    return file.getvalue()


def with_part(data, name, content):
    """Return the workbook with another content of this part."""
    file = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as old,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for part in old.namelist():
            if part != name:
                new.writestr(part, old.read(part))
        new.writestr(name, content)
    return file.getvalue()


def part_of(data, name):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.read(name).decode()
