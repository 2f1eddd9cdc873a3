"""requirements.lock: everything that requirements.txt needs, each file with its hash."""

from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent


def read_requirements(name):
    """The requirements of a file by name; those of a lock with their hashes."""
    text = (ROOT / name).read_text().replace("\\\n", " ")
    lines = (line.split(" #")[0].strip() for line in text.splitlines())
    found = {}
    for line in lines:
        if line and line[0] not in "#-":
            requirement, *hashes = line.split(" --hash=")
            read = Requirement(requirement)
            found[canonicalize_name(read.name)] = read, hashes
    return found


LISTED = read_requirements("requirements.txt")
LOCKED = read_requirements("requirements.lock")


def test_each_package_has_one_version_and_hashes():
    for requirement, hashes in LOCKED.values():
        assert str(requirement.specifier).startswith("=="), requirement
        assert hashes, requirement
        assert all(one.strip().startswith("sha256:") for one in hashes)


def test_the_lock_has_what_is_listed_and_what_that_needs():
    """If this fails: `make lock`."""
    needed, seen = [one for one, _ in LISTED.values()], set()
    while needed:
        requirement = needed.pop()
        name = canonicalize_name(requirement.name)
        assert name in LOCKED, f"{requirement} is missing"
        [version] = LOCKED[name][0].specifier
        assert requirement.specifier.contains(version.version), requirement
        if (name, *requirement.extras) in seen:
            continue
        seen.add((name, *requirement.extras))
        for text in distribution(name).requires or ():
            wanted = Requirement(text)
            extras = requirement.extras or {""}
            if not wanted.marker or any(
                wanted.marker.evaluate({"extra": extra}) for extra in extras
            ):
                needed.append(wanted)


def test_the_lock_has_nothing_else():
    elsewhere = {
        name
        for name, (one, _) in LOCKED.items()
        if one.marker and not one.marker.evaluate()
    }
    needed, seen = list(LISTED), set()
    while needed:
        name = needed.pop()
        if name in LOCKED and name not in seen | elsewhere:
            seen.add(name)
            requires = distribution(name).requires or ()
            needed += [canonicalize_name(Requirement(one).name) for one in requires]
    assert set(LOCKED) == seen | elsewhere
