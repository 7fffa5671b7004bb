/*
 * Part of stub_rdma.c: connections between ids of this process, after stub_link(1). An id has at most one other end, until one of them says
 * that it is over.
 */

/* What the fields for private data of rdma_cm's messages have room for; on iWARP there is no padding. core/cma.c, ib_cm.h. */
#define REQUEST_BYTES 56
#define REPLY_BYTES 196
#define REJECT_BYTES 148

static int goes_by_tcp(struct rdma_cm_id *id) { return id->verbs->device->transport_type == IBV_TRANSPORT_IWARP; }

static void say_to_peer(struct rdma_cm_id *id, struct rdma_cm_id *listener, int type, int status, struct rdma_conn_param *said, int room)
{
	say(id, listener, type, status, said, goes_by_tcp(id) ? 0 : room);
}

/* What the attempt of an id ends with. */
static void refuse(struct stub_id *id, int ib_reason, struct rdma_conn_param *said)
{
	say_to_peer(&id->base, NULL, RDMA_CM_EVENT_REJECTED, goes_by_tcp(&id->base) ? -ECONNREFUSED : ib_reason, said, REJECT_BYTES);
}

static void unlink_ids(struct stub_id *id)
{
	if (id->peer)
		id->peer->peer = NULL;
	id->peer = NULL;
}

/* Whether an id is bound to an address. */
static int is_taken(struct sockaddr_in *address)
{
	for (int i = 0; i < MAX_QPS; i++) {
		struct sockaddr_in *its = ids[i] ? (struct sockaddr_in *) &ids[i]->route.addr.src_addr : NULL;
		if (its && ((struct stub_id *) ids[i])->bound && its->sin_port == address->sin_port
		    && (!its->sin_addr.s_addr || !address->sin_addr.s_addr || its->sin_addr.s_addr == address->sin_addr.s_addr))
			return 1;
	}
	return 0;
}

static void connect_linked(struct stub_id *id, struct rdma_conn_param *parameters)
{
	struct sockaddr_in *to = (struct sockaddr_in *) &id->base.route.addr.dst_addr;

	id->number = id->base.qp->qp_num;
	id->rnr_retries = parameters->rnr_retry_count;
	for (int i = 0; i < MAX_QPS; i++) {
		struct sockaddr_in *its = ids[i] && ids[i]->event ? (struct sockaddr_in *) &ids[i]->route.addr.src_addr : NULL;
		if (!its || its->sin_port != to->sin_port || (its->sin_addr.s_addr && its->sin_addr.s_addr != to->sin_addr.s_addr))
			continue;
		struct stub_id *child = child_of(ids[i]);
		child->base.verbs = id->base.verbs;
		child->base.port_num = id->base.port_num;
		*(struct sockaddr_in *) &child->base.route.addr.src_addr = *to;
		child->base.route.addr.dst_addr = id->base.route.addr.src_addr;
		child->peer = id;
		id->peer = child;
		say_to_peer(&child->base, ids[i], RDMA_CM_EVENT_CONNECT_REQUEST, 0, parameters, REQUEST_BYTES);
		return;
	}
	refuse(id, 8, NULL); /* IB_CM_REJ_INVALID_SERVICE_ID */
}

static int accept_linked(struct stub_id *id, struct rdma_conn_param *parameters)
{
	struct stub_id *other = id->peer;
	struct stub_qp *its = other ? existing(other->number) : NULL, *own = (struct stub_qp *) id->base.qp;

	if (!its) {
		errno = EINVAL;
		return -1;
	}
	id->number = own->base.qp_num;
	own->peer = its->base.qp_num;
	its->peer = own->base.qp_num;
	/* Each side asks the other one to be patient. */
	own->rnr_retries = other->rnr_retries;
	its->rnr_retries = parameters->rnr_retry_count;
	id->established = other->established = 1;
	tell(&id->base, RDMA_CM_EVENT_ESTABLISHED, 0);
	say_to_peer(&other->base, NULL, RDMA_CM_EVENT_ESTABLISHED, 0, parameters, REPLY_BYTES);
	return 0;
}

static void reject_linked(struct stub_id *id, const void *data, int bytes)
{
	struct rdma_conn_param said = { .private_data = data, .private_data_len = bytes };

	if (id->peer)
		refuse(id->peer, 28, &said); /* IB_CM_REJ_CONSUMER_DEFINED */
	unlink_ids(id);
}

/*
 * rdma_disconnect takes the own queue pair to its error state (librdmacm/cma.c, ucma_shutdown). TCP's end reaches both;
 * with RoCE's messages the one that left first is told when the other has left too, or is destroyed. Then queue pairs leave timewait (the
 * kernel's core/cma.c, cma_ib_handler).
 */
static void disconnect_linked(struct stub_id *id)
{
	struct stub_id *other = id->peer;
	struct stub_qp *own = existing(id->number), *its = other ? existing(other->number) : NULL;

	if (own)
		break_off(own);
	if (other && id->established && !id->leaving) {
		if (goes_by_tcp(&id->base)) {
			if (its)
				break_off(its);
			tell(&id->base, RDMA_CM_EVENT_DISCONNECTED, 0);
		} else if (!other->leaving) {
			id->leaving = 1;
			tell(&other->base, RDMA_CM_EVENT_DISCONNECTED, 0);
			return;
		}
		tell(&other->base, RDMA_CM_EVENT_DISCONNECTED, 0);
		if (!goes_by_tcp(&id->base))
			tell(&other->base, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
		unlink_ids(id);
	}
}

/* An id is destroyed, and with it what it was connected to, or was about to. */
static void leave(struct rdma_cm_id *id)
{
	struct stub_id *own = (struct stub_id *) id, *other = own->peer;
	struct stub_qp *its = other ? existing(other->number) : NULL;

	if (other && own->established) {
		if (its && goes_by_tcp(id))
			break_off(its);
		if (!own->leaving)
			tell(&other->base, RDMA_CM_EVENT_DISCONNECTED, 0);
	} else if (other) {
		refuse(other, 28, NULL); /* IB_CM_REJ_CONSUMER_DEFINED */
	}
	unlink_ids(own);
}
