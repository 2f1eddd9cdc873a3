"""The base of all REST views, and the OpenAPI document. Each app has its own views."""
