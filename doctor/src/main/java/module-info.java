/** Checks whether this machine can use RDMA, and says what to do if it cannot. */
@org.jspecify.annotations.NullMarked
module org.verbena.doctor {
    requires static org.jspecify;
    requires org.verbena.api;
    requires org.verbena.cm;
    requires org.verbena.verbs;
    requires io.netty.buffer;

    exports org.verbena.doctor;
}
