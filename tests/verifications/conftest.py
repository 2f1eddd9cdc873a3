from tests.connections.conftest import any_phone, phone

__all__ = ["any_phone", "phone"]
