/** FFM bindings to what libibverbs has for raw packets. */
@org.jspecify.annotations.NullMarked
module org.verbena.verbs.packet {
    requires static org.jspecify;
    requires transitive org.verbena.verbs;

    exports org.verbena.verbs.packet;
}
