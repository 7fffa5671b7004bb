/** FFM bindings to libibverbs. */
@org.jspecify.annotations.NullMarked
module org.verbena.verbs {
    requires static org.jspecify;
    requires org.slf4j;

    exports org.verbena.verbs;
    exports org.verbena.verbs.address;
    exports org.verbena.verbs.device;
    exports org.verbena.verbs.memory;
    exports org.verbena.verbs.queue;
    exports org.verbena.verbs.work;
    exports org.verbena.verbs.ffm to
            org.verbena.cm,
            org.verbena.transport.verbs,
            org.verbena.verbs.packet;
    exports org.verbena.verbs.internal to
            org.verbena.verbs.packet;
}
