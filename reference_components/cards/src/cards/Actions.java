package cards;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What can be asked about a card, as one table of reads and one of writes. */
final class Actions {
    interface Read {
        Map<String, Object> answer(Map<String, Object> card);
    }

    interface Write {
        Vault.Change decide(Map<String, Object> card, Request request, Vault vault) throws Failure;
    }

    static final Map<String, Read> READS = Map.of(
            "cards.status", card -> pick(card, "card", "kind", "status", "last4", "expires", "delivery_days",
                    "pin_tries_left", "contactless"),
            "cards.limits", card -> pick(card, "card", "currency", "atm_daily", "payments_daily", "top_up_daily"));

    static final Map<String, Write> WRITES = Map.of(
            "cards.freeze", Actions::freeze,
            "cards.activate", Actions::activate,
            "cards.replace", Actions::replace);

    private static final String REASONS = "LOST|STOLEN|COMPROMISED|DAMAGED|EXPIRING|SWALLOWED|NEW";

    private Actions() {}

    private static Vault.Change freeze(Map<String, Object> card, Request request, Vault vault) {
        // A cancelled card is stopped already, and stays cancelled.
        return become(card, card.get("status").equals("CANCELLED") ? "CANCELLED" : "FROZEN");
    }

    private static Vault.Change activate(Map<String, Object> card, Request request, Vault vault) throws Failure {
        refuseCancelled(card);
        return become(card, "ACTIVE");
    }

    private static Vault.Change become(Map<String, Object> card, String status) {
        Map<String, Object> output = new LinkedHashMap<>();
        output.put("card", card.get("card"));
        output.put("status", status);
        output.put("was", card.get("status"));
        boolean same = card.get("status").equals(status);
        return new Vault.Change(same ? List.of() : List.of(Vault.with(card, "status", status)), output);
    }

    /** Orders one new card; asked again while that one is under way, it names it and orders nothing. */
    private static Vault.Change replace(Map<String, Object> card, Request request, Vault vault) throws Failure {
        String reason = request.argument("reason", REASONS);
        Map<String, Object> output = new LinkedHashMap<>();
        if (card.get("replaced_by") instanceof String ordered) {
            Map<String, Object> coming = vault.card(ordered);
            output.put("card", ordered);
            output.put("replaces", card.get("card"));
            output.put("delivery_days", coming.get("delivery_days"));
            output.put("ordered_now", false);
            return new Vault.Change(List.of(), output);
        }
        refuseCancelled(card);
        String id = String.format("card-%04d", vault.count() + 1);
        Map<String, Object> fresh = new LinkedHashMap<>(card);
        fresh.put("card", id);
        fresh.put("status", "DELIVERING");
        fresh.put("last4", String.format("%04d", (vault.count() * 7919 + 1237) % 10000));
        fresh.put("delivery_days", new Json.Num("5"));
        fresh.put("pin_tries_left", new Json.Num("3"));
        // A card that merely wears out works until the new one is here.
        boolean works = reason.equals("EXPIRING") || reason.equals("NEW") || reason.equals("DAMAGED");
        Map<String, Object> old = Vault.with(card, "replaced_by", id);
        output.put("card", id);
        output.put("replaces", card.get("card"));
        output.put("delivery_days", fresh.get("delivery_days"));
        output.put("ordered_now", true);
        Map<String, Object> after = works ? old : Vault.with(old, "status", "CANCELLED");
        return new Vault.Change(List.of(after, fresh), output);
    }

    private static void refuseCancelled(Map<String, Object> card) throws Failure {
        if (card.get("status").equals("CANCELLED")) {
            throw new Failure(Failure.Reason.CARD_CANCELLED, card.get("card") + " was cancelled and replaced");
        }
    }

    private static Map<String, Object> pick(Map<String, Object> card, String... names) {
        Map<String, Object> picked = new LinkedHashMap<>();
        for (String name : names) {
            if (card.containsKey(name)) {
                picked.put(name, card.get(name));
            }
        }
        return picked;
    }
}
