/** JGroups over RDMA. */
@org.jspecify.annotations.NullMarked
module org.verbena.jgroups {
    requires static org.jspecify;
    requires org.slf4j;
    requires transitive org.jgroups;
    requires transitive org.verbena.api;

    exports org.verbena.jgroups;

    // JGroups sets the attributes of its XML by reflection.
    opens org.verbena.jgroups to
            org.jgroups;
}
