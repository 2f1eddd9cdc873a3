"""Accounts of people in the admin, and Django's log of what staff changed in it.

Each look at an account is in the audit log.
"""

from collections.abc import Sequence
from typing import Any

import allauth.account.admin
import allauth.mfa.admin
import allauth.usersessions.admin  # noqa: F401 (what is replaced here is registered first)
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.admin.options import InlineModelAdmin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import Exists, Model, OuterRef, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse

from agency.support.admin.base import ReadOnlyAdmin, Titled, organization
from agency.support.admin.organizations import Inline
from core.work import transactions
from tenants import audit
from tenants.lifecycle import departures
from tenants.models import Membership, Role

admin.site.unregister([User, Group])
# Shown on the page of the account, so that a look at it is logged.
admin.site.unregister(EmailAddress)
# allauth's pages of factors and sessions: nobody needs to read them.
admin.site.unregister([Authenticator, UserSession])


class Organizations(Inline):
    model = Membership
    fields = [organization, "role", "created_at"]  # type: ignore[list-item]
    verbose_name_plural = "organizations"
    show_change_link = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Membership]:
        return super().get_queryset(request).select_related("tenant")


class Addresses(Inline):
    model = EmailAddress
    fields = ["email", "verified", "primary"]
    verbose_name_plural = "mail addresses"
    show_change_link = False

    def has_view_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return request.user.has_perm("auth.view_user")


@admin.register(Group)
class StaffGroupAdmin(Titled, GroupAdmin):
    filter_horizontal = ()  # plain lists have names for screen readers, and no script


@admin.register(User)
class PersonAdmin(Titled, UserAdmin):
    """Staff with Django's permission to change accounts are as good as superusers.

    For all others the page shows no trace of the password.
    """

    list_display = ["email", "is_active", "is_staff", "last_login", "date_joined"]
    list_display_links = ["email"]
    list_filter = ["is_active", "is_staff", "groups"]
    search_fields = ["email", "username"]
    ordering = ["-pk"]
    list_per_page = 50
    show_full_result_count = False
    filter_horizontal = ()
    readonly_fields = ["last_login", "date_joined"]
    inlines = [Organizations, Addresses]
    view_fields = [
        "email", "username", "is_active", "is_staff", "is_superuser", "groups",
        "last_login", "date_joined",
    ]  # fmt: skip

    def get_inlines(
        self, request: HttpRequest, obj: User | None
    ) -> list[type[InlineModelAdmin]]:
        return [*self.inlines] if obj else []

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        if obj and not self.has_change_permission(request, obj):
            return [(None, {"fields": self.view_fields})]
        return super().get_fieldsets(request, obj)

    def get_deleted_objects(
        self, objs: Sequence[User] | QuerySet[User], request: HttpRequest
    ) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        """Name what goes with accounts, by counts: Django would read each row of it.

        The only owner of an organization stays.
        """
        people = [person.pk for person in objs]
        theirs = Membership.objects.filter(user__in=people)
        others = Membership.objects.filter(
            tenant=OuterRef("tenant"), role=Role.OWNER
        ).exclude(user__in=people)
        only_theirs = theirs.filter(~Exists(others), role=Role.OWNER)
        names = only_theirs.values_list("tenant__name", flat=True).distinct()
        counts = {
            "accounts": len(people),
            "memberships": theirs.count(),
            "mail addresses": EmailAddress.objects.filter(user__in=people).count(),
        }
        kept = [f"{name}: it has no other owner" for name in names]
        return [str(person) for person in objs], counts, set(), kept

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        self.delete_queryset(request, User.objects.filter(pk=obj.pk))

    @transactions.atomic()
    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        """Also end the keys and webhooks that these people made as members."""
        theirs = Membership.objects.filter(user__in=queryset, tenant__deleted_at=None)
        for member in theirs.select_related("tenant", "user").order_by("tenant"):
            departures.end_belongings(member, None, departures.Choice(), by=request)
        super().delete_queryset(request, queryset)

    def save_model(
        self, request: HttpRequest, obj: User, form: ModelForm, change: bool
    ) -> None:
        """Django's form is for superusers. What also is an action has its log row."""
        super().save_model(request, obj, form, change)
        if change and "is_active" in form.changed_data:
            action = "person.enabled" if obj.is_active else "person.disabled"
            audit.record(action, obj, by=request)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any
    ) -> HttpResponse:
        if person := options.get("obj"):
            audit.record("record.viewed", person, by=request)
        return super().render_change_form(request, context, *args, **options)


@admin.register(LogEntry)
class LogEntryAdmin(ReadOnlyAdmin):
    list_display = [
        "action_time", "user", "content_type", "object_repr", "action_flag", "what",
    ]  # fmt: skip
    list_filter = ["action_flag", "content_type"]
    search_fields = ["object_repr", "object_id", "user__email"]
    date_hierarchy = "action_time"
    fields = ["action_time", "user", "content_type", "object_id", "object_repr", "what"]

    @admin.display(description="change")
    def what(self, entry: LogEntry) -> str:
        return entry.get_change_message()

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        # Not as ReadOnlyAdmin does: primary keys of the log are numbers, and ids of
        # records are found as texts, in `object_id`.
        return admin.ModelAdmin.get_search_results(self, request, queryset, search_term)
